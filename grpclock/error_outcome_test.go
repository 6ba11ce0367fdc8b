package grpclock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// refusal is a refused call: the interceptor, and what happens before the call.
type refusal struct {
	of      interceptor // nil: UnaryServerInterceptor
	key     grpclock.Key
	opts    []core.Option
	prepare func(t *testing.T, e *env)
	around  func(e *env) grpc.UnaryServerInterceptor
	call    func(ctx context.Context) context.Context

	code       codes.Code
	reason     string
	message    string // empty means any
	part       string // what the client has to mend, in that message
	retryAfter time.Duration
	pushback   string // the trailer, if the status is not of this package
}

// An interceptor is one of this package for unary calls.
type interceptor = func(*core.Locker, grpclock.Key, ...core.Option) grpc.UnaryServerInterceptor

// env is the input of a refusal's prepare function.
type env struct {
	locks   *core.Locker
	proxy   *redistest.Proxy
	rdb     *redis.Client
	waiting chan struct{} // receives a value when a call waits
	warned  atomic.Int32
}

func failing(err error) grpclock.Key {
	return core.KeyOf(func(*grpclock.Call) (string, error) { return "", err })
}

// Every refusal of a call.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	taken := func(t *testing.T, e *env) {
		adaptertest.Hold(t, e.rdb)
		// This opens the connection, so that a short wait does not include it.
		if _, err := e.locks.TryLock(t.Context(), theKey); !errors.Is(err, core.ErrBusy) {
			t.Fatalf("the key is not taken: %v", err)
		}
	}
	for name, test := range map[string]refusal{
		"busy": {
			key: literal, prepare: taken,
			code: codes.Aborted, reason: "BUSY", retryAfter: time.Second,
		},
		"busy, another hint": {
			key: literal, prepare: taken, opts: []core.Option{core.WithRetryAfter(1500 * time.Millisecond)},
			code: codes.Aborted, reason: "BUSY", retryAfter: 1500 * time.Millisecond,
		},
		"wait timeout": {
			key: literal, prepare: taken, opts: []core.Option{core.WithWait(time.Second)},
			code: codes.Aborted, reason: "WAIT_TIMEOUT", retryAfter: time.Second,
		},
		"wait timeout, another hint": {
			key: literal, prepare: taken,
			opts: []core.Option{core.WithWait(time.Second), core.WithRetryAfter(1500 * time.Millisecond)},
			code: codes.Aborted, reason: "WAIT_TIMEOUT", retryAfter: 1500 * time.Millisecond,
		},
		"no key": {
			key:  grpclock.Metadata("x-account"),
			code: codes.InvalidArgument, reason: "NO_KEY", part: `the metadata "x-account"`,
		},
		"invalid key": {
			key: grpclock.Metadata("x-account"),
			call: func(ctx context.Context) context.Context {
				return metadata.AppendToOutgoingContext(ctx, "x-account", theKey, "x-account", theKey)
			},
			code: codes.InvalidArgument, reason: "INVALID_KEY", part: `the metadata "x-account"`,
		},
		"body too large": {
			key:  failing(core.ErrBodyTooLarge),
			code: codes.ResourceExhausted, reason: "BODY_TOO_LARGE",
		},
		"key error": {
			key:  failing(errors.New(theKey)),
			code: codes.Internal, reason: "KEY_ERROR",
		},
		"key error with a status": {
			key:  failing(fmt.Errorf("%s: %w", theKey, status.Error(codes.PermissionDenied, "not yours"))),
			code: codes.PermissionDenied, message: "not yours",
		},
		"key error with INTERNAL": {
			key:  failing(status.Error(codes.Internal, "mine")),
			code: codes.Internal, message: "mine",
		},
		"key error with OK": {
			key:  failing(okError{}),
			code: codes.Internal, reason: "KEY_ERROR",
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
		"deadline": {
			key: literal, prepare: taken, opts: []core.Option{core.WithWait(time.Minute)},
			around: func(*env) grpc.UnaryServerInterceptor {
				return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
					ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
					defer cancel()
					return next(ctx, req)
				}
			},
			code: codes.DeadlineExceeded, reason: "DEADLINE", retryAfter: time.Second,
		},
		"canceled": {
			key: literal, prepare: taken, opts: []core.Option{core.WithWait(time.Minute)},
			around: func(e *env) grpc.UnaryServerInterceptor {
				return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					go func() {
						<-e.waiting
						cancel()
					}()
					return next(ctx, req)
				}
			},
			code: codes.Canceled, reason: "CANCELED",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testRefusal(t, test)
		})
	}
}

// okError is an error with the status OK.
type okError struct{}

func (okError) Error() string              { return theKey }
func (okError) GRPCStatus() *status.Status { return status.New(codes.OK, theKey) }

func testRefusal(t *testing.T, test refusal) {
	t.Helper()
	redisServer := redistest.Reuse(t)
	e := &env{
		proxy:   redistest.NewProxy(t, redisServer.Addr()),
		rdb:     redisServer.Client(t),
		waiting: make(chan struct{}, 1),
	}
	e.locks = core.Must(core.New(e.proxy.Client(t), adaptertest.LongCommands(core.WithObserver(func(event core.Event) {
		switch event.Kind {
		case core.Waiting:
			e.waiting <- struct{}{}
		case core.Warned:
			e.warned.Add(1)
		default:
		}
	}))...))
	adaptertest.CloseAfter(t, e.locks)
	t.Cleanup(func() { e.proxy.Refuse(false) })
	var chain []grpc.UnaryServerInterceptor
	if test.around != nil {
		chain = append(chain, test.around(e))
	}
	if test.of == nil {
		test.of = grpclock.UnaryServerInterceptor
	}
	chain = append(chain, test.of(e.locks, test.key, test.opts...))
	ran := false
	client := serve(t, &bank{transfer: func(context.Context, *pb.TransferRequest) error {
		ran = true
		return nil
	}}, grpc.ChainUnaryInterceptor(chain...))
	if test.prepare != nil {
		test.prepare(t, e)
	}
	ctx := within(t)
	if test.call != nil {
		ctx = test.call(ctx)
	}

	var trailer metadata.MD
	_, err := client.Transfer(ctx, transferOf(theKey), grpc.Trailer(&trailer))

	if ran {
		t.Error("the handler has run")
	}
	checkStatus(t, err, test)
	checkPushback(t, trailer, test)
	ofProgram := test.reason == "KEY_ERROR" || test.reason == "NO_KEY" && test.part == ""
	if n := e.warned.Load(); n > 1 || (n == 1) != ofProgram {
		t.Errorf("%d warnings", n)
	}
}

// checkStatus compares a status, which must contain neither the key nor the token.
func checkStatus(t *testing.T, err error, test refusal) {
	t.Helper()
	got := status.Convert(err)
	text := got.Message()
	if got.Code() != test.code || text == "" || test.message != "" && text != test.message || !strings.Contains(text, test.part) {
		t.Errorf("%v", err)
	}
	var retries []time.Duration
	for _, detail := range got.Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			retries = append(retries, retry.GetRetryDelay().AsDuration())
		}
	}
	var want []time.Duration
	if test.retryAfter != 0 {
		want = []time.Duration{test.retryAfter}
	}
	if !slices.Equal(retries, want) || reasonOf(err) != test.reason {
		t.Errorf("details %v", got.Details())
	}
	if all := protojson.Format(got.Proto()); strings.Contains(all, theKey) || strings.Contains(all, adaptertest.ForeignToken) {
		t.Errorf("the answer contains the key or the token: %s", all)
	}
}
