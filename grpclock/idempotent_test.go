package grpclock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// begun begins an attempt for a call, without a fingerprint. The end of the test
// aborts the attempt.
func begun(t *testing.T, locks *core.Locker, key string) *core.Attempt {
	t.Helper()
	attempt, err := locks.Begin(t.Context(), adapter.Must(core.EndpointKey("", pb.Bank_Transfer_FullMethodName, key)), nil)
	if err != nil {
		t.Fatalf("Begin: %v", err)
	}
	t.Cleanup(func() { _ = attempt.Abort(context.Background()) })
	return attempt
}

// Every refusal of an idempotent call.
func TestIdempotentOutcomes(t *testing.T) {
	t.Parallel()
	without := core.WithoutFingerprint()
	running := func(t *testing.T, e *env) { begun(t, e.locks, theKey) }
	ended := func(end func(*core.Attempt, context.Context) error) func(*testing.T, *env) {
		return func(t *testing.T, e *env) {
			if err := end(begun(t, e.locks, theKey), t.Context()); err != nil {
				t.Errorf("the first attempt: %v", err)
			}
		}
	}
	for name, test := range map[string]refusal{
		"in flight": {
			key: literal, prepare: running, opts: []core.Option{without},
			code: codes.Aborted, reason: "BUSY", retryAfter: time.Second,
		},
		"in flight, another hint": {
			key: literal, prepare: running, opts: []core.Option{without, core.WithRetryAfter(1500 * time.Millisecond)},
			code: codes.Aborted, reason: "BUSY", retryAfter: 1500 * time.Millisecond,
		},
		"wait timeout": {
			key: literal, prepare: running, opts: []core.Option{without, core.WithWait(time.Second)},
			code: codes.Aborted, reason: "WAIT_TIMEOUT", retryAfter: time.Second,
		},
		"no key": {
			key:  grpclock.IdempotencyKey(),
			code: codes.InvalidArgument, reason: "NO_KEY", part: `the metadata "idempotency-key"`,
		},
		"an empty key": {
			key: grpclock.IdempotencyKey(), opts: []core.Option{core.WithOptionalKey()},
			call: func(ctx context.Context) context.Context {
				return metadata.AppendToOutgoingContext(ctx, "idempotency-key", "")
			},
			code: codes.InvalidArgument, reason: "NO_KEY", part: `the metadata "idempotency-key"`,
		},
		"two keys": {
			key: grpclock.IdempotencyKey(),
			call: func(ctx context.Context) context.Context {
				return metadata.AppendToOutgoingContext(ctx, "idempotency-key", "a", "idempotency-key", "a")
			},
			code: codes.InvalidArgument, reason: "INVALID_KEY", part: `the metadata "idempotency-key"`,
		},
		"no user, and optional idempotency-key": {
			key:  core.Join(grpclock.ContextValue(userKey{}), grpclock.IdempotencyKey()),
			opts: []core.Option{core.WithOptionalKey()},
			call: func(ctx context.Context) context.Context {
				return metadata.AppendToOutgoingContext(ctx, "idempotency-key", "a")
			},
			code: codes.InvalidArgument, reason: "NO_KEY",
		},
		"a key error": {
			key:  failing(errors.New(theKey)),
			code: codes.Internal, reason: "KEY_ERROR",
		},
		"a fingerprint error": {
			key: literal, opts: []core.Option{core.WithFingerprint(func(*grpclock.Call) ([]byte, error) {
				return nil, errors.New(theKey)
			})},
			code: codes.Internal, reason: "KEY_ERROR",
		},
		"a fingerprint error with a status": {
			key: literal, opts: []core.Option{core.WithFingerprint(func(*grpclock.Call) ([]byte, error) {
				return nil, fmt.Errorf("%s: %w", theKey, status.Error(codes.PermissionDenied, "not yours"))
			})},
			code: codes.PermissionDenied, message: "not yours",
		},
		"another message": {
			key: literal, prepare: running,
			code: codes.FailedPrecondition, reason: "MISMATCH",
		},
		"another message, after the end": {
			key: literal, prepare: ended(func(a *core.Attempt, ctx context.Context) error { return a.Commit(ctx, nil) }),
			code: codes.FailedPrecondition, reason: "MISMATCH",
		},
		"unknown": {
			key: literal, prepare: ended(func(a *core.Attempt, ctx context.Context) error { return a.Unknown(ctx, nil) }), opts: []core.Option{without},
			code: codes.FailedPrecondition, reason: "OUTCOME_UNKNOWN",
		},
		"done": {
			key: literal, prepare: ended((*core.Attempt).Done), opts: []core.Option{without},
			code: codes.AlreadyExists, reason: "COMPLETED_UNREPLAYABLE",
		},
		"unavailable": {
			key: literal, prepare: func(_ *testing.T, e *env) { e.proxy.Refuse(true) },
			code: codes.Unavailable, reason: "UNAVAILABLE", retryAfter: time.Second,
		},
		"closing": {
			key: literal, prepare: func(t *testing.T, e *env) {
				if err := e.locks.Close(t.Context()); err != nil {
					t.Error(err)
				}
			},
			code: codes.Unavailable, reason: "CLOSING", retryAfter: time.Second,
		},
		"an error handler": {
			key: literal, prepare: running, opts: []core.Option{
				without, grpclock.WithErrorHandler(func(c *grpclock.Call, err error) error {
					if !errors.Is(err, core.ErrBusy) || c.FullMethod() != pb.Bank_Transfer_FullMethodName {
						t.Errorf("asked about %v in %s", err, c.FullMethod())
					}
					return status.Error(codes.AlreadyExists, "it runs")
				}),
			},
			code: codes.AlreadyExists, message: "it runs", pushback: "1000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.of = grpclock.IdempotentUnaryServerInterceptor
			testRefusal(t, test)
		})
	}
}

// With WithOptionalKey, a call without the metadata runs as without the interceptor.
// A call with the metadata needs a valid key.
func TestOptionalKey(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		names []string
		call  []string // metadata
		runs  int32    // of two calls
	}{
		"no key":                         {nil, nil, 2},
		"another's metadata":             {nil, []string{"x-key", "a"}, 2},
		"a key":                          {nil, []string{"idempotency-key", "a"}, 1},
		"none of those named":            {[]string{"X-Key", "x-other"}, []string{"idempotency-key", "a"}, 2},
		"one of those named, and no key": {[]string{"X-Key", "x-other"}, []string{"x-other", "a"}, 0},
		"one of those named, and a key":  {[]string{"X-Key", "x-other"}, []string{"X-KEY", "a", "idempotency-key", "a"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, _ := adaptertest.Locker(t)
			var runs atomic.Int32
			conn := dial(t, listen(t, counted(&runs, func(ctx context.Context, _ *pb.TransferRequest) error {
				if _, ok := core.AttemptFromContext(ctx); ok != (test.runs == 1) {
					t.Errorf("it runs as an attempt: %v", ok)
				}
				return nil
			}), idempotent(locks, grpclock.IdempotencyKey(), core.WithOptionalKey(test.names...))), plaintext)
			for range 2 {
				got := ask(metadata.AppendToOutgoingContext(within(t), test.call...), conn, transferOf("a"))
				if (got.status.Code() == codes.OK) != (test.runs > 0) {
					t.Errorf("%s", got)
				}
			}
			wantRuns(t, &runs, test.runs)
		})
	}
}

// Methods that ByMethod does not list run as without the interceptor. The keys of two
// methods are independent.
func TestIdempotentByMethod(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	var runs atomic.Int32
	client := serve(t, &bank{transfer: func(context.Context, *pb.TransferRequest) error {
		runs.Add(1)
		return nil
	}}, idempotent(locks, grpclock.ByMethod(map[string]grpclock.Key{
		pb.Bank_Transfer_FullMethodName:   grpclock.IdempotencyKey(),
		pb.Bank_PlaceOrder_FullMethodName: grpclock.IdempotencyKey(),
	})))
	for _, replayed := range []bool{false, true} {
		_, err := client.Transfer(marked(t, "a"), transferOf("a"))
		wantCode(t, err, codes.OK)
		_, err = client.Balance(within(t), &pb.BalanceRequest{}) // without a key
		wantCode(t, err, codes.OK)
		var header metadata.MD
		_, err = client.PlaceOrder(marked(t, "a"), &pb.PlaceOrderRequest{}, grpc.Header(&header))
		wantCode(t, err, codes.Unimplemented) // which is stored
		if got := header["idempotent-replayed"] != nil; got != replayed {
			t.Errorf("the order is a replay: %v", got)
		}
	}
	wantRuns(t, &runs, 1)
}

// The interceptor for idempotent calls does not affect streams.
func TestStreamsAreNotIdempotent(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	client := serve(t, &bank{batch: func(s batchServer) error {
		runs.Add(1)
		_, ok := core.AttemptFromContext(s.Context())
		if ok {
			t.Error("a stream runs as an attempt")
		}
		return s.Send(&pb.TransferReply{})
	}}, idempotent(adaptertest.UnusedLocker(t), literal))
	for range 2 {
		wantCode(t, batchCall(within(t), client), codes.OK)
	}
	wantRuns(t, &runs, 2)
}

// Two interceptors with the same key make one attempt. With different keys each makes
// an attempt, and a replay of the inner one is the answer of the outer one.
func TestNestedIdempotent(t *testing.T) {
	t.Parallel()
	for name, inner := range map[string]grpclock.Key{"same key": literal, "another key": grpclock.Literal("another")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := &warnings{}
			locks, rdb := adaptertest.Locker(t, core.WithObserver(sent.observe))
			var runs atomic.Int32
			conn := dial(t, listen(t, counted(&runs, func(ctx context.Context, _ *pb.TransferRequest) error {
				return grpc.SetHeader(ctx, metadata.Pairs("x-number", "7"))
			}), grpc.ChainUnaryInterceptor(
				grpclock.IdempotentUnaryServerInterceptor(locks, literal),
				grpclock.UnaryServerInterceptor(locks, literal), // a lock of the same name is another one
				grpclock.IdempotentUnaryServerInterceptor(locks, inner))), plaintext)
			first := ask(within(t), conn, transferOf("a"))
			wantOK(t, first)
			checkReplay(t, first, ask(within(t), conn, transferOf("a")))

			outer := adapter.Must(core.EndpointKey("", pb.Bank_Transfer_FullMethodName, theKey))
			names, err := rdb.Keys(t.Context(), "*"+outer+"*").Result()
			if err != nil || len(names) == 0 {
				t.Fatalf("KEYS: %q, %v", names, err)
			}
			if err := rdb.Del(t.Context(), names...).Err(); err != nil {
				t.Fatal(err)
			}
			later := ask(within(t), conn, transferOf("a"))
			warned := sent.take()
			if name == "same key" {
				wantRuns(t, &runs, 2)
				if len(warned) != 1 || !strings.Contains(warned[0], "two idempotent middlewares run "+pb.Bank_Transfer_FullMethodName) {
					t.Errorf("the observer got %q", warned)
				}
				return
			}
			if len(warned) != 0 {
				t.Errorf("the observer got %q", warned)
			}
			wantRuns(t, &runs, 1)
			checkReplay(t, first, later) // the inner one's
			checkReplay(t, first, ask(within(t), conn, transferOf("a")))
		})
	}
}
