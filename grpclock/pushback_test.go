package grpclock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

const pushbackName = "grpc-retry-pushback-ms"

// checkPushback compares the trailer of a refused call.
func checkPushback(t *testing.T, trailer metadata.MD, test refusal) {
	t.Helper()
	want := test.pushback
	switch {
	case test.retryAfter > 0:
		want = fmt.Sprint(test.retryAfter.Milliseconds())
	case test.reason != "":
		want = "-1"
	}
	if got := strings.Join(trailer[pushbackName], " "); got != want {
		t.Errorf("the trailer says %q, want %q", got, want)
	}
}

// A pushback is a row of TestPushback: a call whose key is taken, and the trailer for its client.
type pushback struct {
	chain  func(lock, idempotent grpc.UnaryServerInterceptor, free func()) []grpc.UnaryServerInterceptor
	key    error                      // of the key; nil: literal
	hook   func(*grpclock.Call) error // nil: no error handler
	handle error                      // of a handler that runs
	want   []string
}

// A client gets one value at most: it does not retry if there are several. A value belongs to
// the refusal with which the call ends.
func TestPushback(t *testing.T) {
	t.Parallel()
	type interceptor = grpc.UnaryServerInterceptor
	own := func(code codes.Code, delay time.Duration) error {
		s, _ := status.New(code, "mine").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
		return s.Err()
	}
	setsOwn := func(c *grpclock.Call) error {
		return grpc.SetTrailer(c.Context(), metadata.Pairs(pushbackName, "7"))
	}
	for name, test := range map[string]pushback{
		"refused twice": {
			chain: func(lock, _ interceptor, _ func()) []interceptor { return []interceptor{again(func() {}), lock} },
			want:  []string{"1000"},
		},
		"refused twice under Idempotent": {
			chain: func(lock, idempotent interceptor, _ func()) []interceptor {
				return []interceptor{idempotent, again(func() {}), lock}
			},
			want: []string{"1000"},
		},
		"refused, then run, under Idempotent": {
			chain: func(lock, idempotent interceptor, free func()) []interceptor {
				return []interceptor{idempotent, again(free), lock}
			},
			handle: status.Error(codes.Unavailable, "the handler's"),
		},
		"refused under two Idempotents": {
			chain: func(lock, idempotent interceptor, _ func()) []interceptor {
				return []interceptor{idempotent, idempotent, lock}
			},
			want: []string{"1000"},
		},
		"refused, and wrapped": {
			chain: func(lock, idempotent interceptor, _ func()) []interceptor {
				return []interceptor{idempotent, replaced(func(err error) error { return fmt.Errorf("x: %w", err) }), lock}
			},
			want: []string{"1000"},
		},
		"refused, and its status alone": {
			chain: func(lock, idempotent interceptor, _ func()) []interceptor {
				return []interceptor{idempotent, replaced(func(err error) error { return status.Convert(err).Err() }), lock}
			},
			want: []string{"1000"},
		},
		"refused, and replaced": {
			chain: func(lock, idempotent interceptor, _ func()) []interceptor {
				return []interceptor{idempotent, replaced(func(error) error { return status.Error(codes.Unavailable, "") }), lock}
			},
		},
		"a handler that returns the refusal of another service": {
			chain:  func(_, idempotent interceptor, _ func()) []interceptor { return []interceptor{idempotent} },
			handle: grpclock.StatusOf(core.ErrBusy).Err(),
		},
		"a key's status":                {key: status.Error(codes.Unavailable, ""), want: nil},
		"a key's RetryInfo":             {key: own(codes.Unavailable, 0), want: []string{"1"}},
		"an error handler's status":     {hook: func(*grpclock.Call) error { return status.Error(codes.Unavailable, "") }, want: []string{"1000"}},
		"an error handler's RetryInfo":  {hook: func(*grpclock.Call) error { return own(codes.Unavailable, 1500*time.Microsecond) }, want: []string{"2"}},
		"an error handler's long delay": {hook: func(*grpclock.Call) error { return own(codes.Unavailable, 1<<63-1) }, want: []string{"9223372036855"}},
		"an error handler for a key's status": {
			key: status.Error(codes.Unavailable, ""), hook: func(*grpclock.Call) error { return status.Error(codes.NotFound, "") },
		},
		"an error handler's trailer": {hook: setsOwn, want: []string{"7"}},
		"an error handler's trailer under Idempotent": {
			chain: func(lock, idempotent interceptor, _ func()) []interceptor { return []interceptor{idempotent, lock} },
			hook:  setsOwn, want: []string{"7"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.run(t)
		})
	}
}

func (p pushback) run(t *testing.T) {
	t.Helper()
	locks, rdb := adaptertest.Locker(t)
	adaptertest.Hold(t, rdb)
	var opts []core.Option
	if p.hook != nil {
		opts = append(opts, grpclock.WithErrorHandler(func(c *grpclock.Call, _ error) error { return p.hook(c) }))
	}
	key := literal
	if p.key != nil {
		key = failing(p.key)
	}
	lock := grpclock.UnaryServerInterceptor(locks, key, opts...)
	chain := []grpc.UnaryServerInterceptor{lock}
	if p.chain != nil {
		idempotent := grpclock.IdempotentUnaryServerInterceptor(locks, grpclock.Literal("a call"))
		chain = p.chain(lock, idempotent, func() { adaptertest.Free(t, rdb) })
	}
	client := serve(t, &bank{transfer: func(context.Context, *pb.TransferRequest) error { return p.handle }}, grpc.ChainUnaryInterceptor(chain...))
	var trailer metadata.MD
	_, err := client.Transfer(within(t), transferOf(theKey), grpc.Trailer(&trailer))
	if got := trailer[pushbackName]; err == nil || !slices.Equal(got, p.want) {
		t.Errorf("%q, want %q: %v", got, p.want, err)
	}
}

// again is an interceptor that sends a refused call on once more.
func again(before func()) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if reply, err := next(ctx, m); err == nil {
			return reply, nil
		}
		before()
		return next(ctx, m)
	}
}

// replaced is an interceptor that changes the error of a call.
func replaced(change func(error) error) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		reply, err := next(ctx, m)
		return reply, change(err)
	}
}

// The client of a stream gets the value of the error with which the stream ends, whatever its
// handler returns, also with a lock inside another one.
func TestPushbackOfStreams(t *testing.T) {
	t.Parallel()
	receives := func(s batchServer) error {
		_, err := s.Recv()
		return err
	}
	ignores := func(s batchServer) error {
		_, _ = s.Recv()
		return nil
	}
	returns := func(batchServer) error { return nil }
	for name, test := range map[string]struct {
		outer, inner grpclock.Key
		handle       func(batchServer) error
		want         string
	}{
		"at the opening":                       {literal, accountOf, receives, "1000"},
		"inside, at the opening":               {grpclock.Literal("another"), literal, receives, "1000"},
		"at the first message":                 {accountOf, core.KeyOf(anotherMessage), receives, "1000"},
		"at the first message, ignored":        {accountOf, core.KeyOf(anotherMessage), ignores, "1000"},
		"inside, at the first message":         {core.KeyOf(anotherMessage), accountOf, receives, "1000"},
		"inside, at the first message ignored": {core.KeyOf(anotherMessage), accountOf, ignores, "1000"},
		"it returns too early":                 {accountOf, core.KeyOf(anotherMessage), returns, "-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, rdb := adaptertest.Locker(t)
			adaptertest.Hold(t, rdb)
			client := serve(t, &bank{batch: test.handle}, streams(locks, test.outer), streams(locks, test.inner))
			stream, err := client.Batch(within(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(transferOf(theKey)); atEnd(err) != nil {
				t.Fatal(err)
			}
			_, err = stream.Recv()
			if got := stream.Trailer()[pushbackName]; err == nil || !slices.Equal(got, []string{test.want}) {
				t.Errorf("%q, want %q: %v", got, test.want, err)
			}
		})
	}
}

// anotherMessage locks another key than theKey, but waits for the message.
func anotherMessage(c *grpclock.Call) (string, error) {
	_ = c.Message()
	return "another", nil
}
