package connectlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	"github.com/reqlock/reqlock/connectlock"
	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// unary returns a function that runs a unary handler behind interceptors without a server, the first
// one outermost.
func unary(handler connect.UnaryFunc, interceptors ...connect.Interceptor) connect.UnaryFunc {
	for i := range interceptors {
		handler = interceptors[len(interceptors)-1-i].WrapUnary(handler)
	}
	return handler
}

// replies returns a handler that replies.
func replies(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
	return connect.NewResponse(&pb.TransferReply{Cents: 42}), nil
}

// What a later copy of a call gets depends on the code that Connect sends, on options, on the decision
// of the handler, and on the refusal of a lock inside.
func TestWhichAnswersAreStored(t *testing.T) {
	t.Parallel()
	const runs, replayed, unknown = "runs", "replayed", "unknown"
	coded := func(code connect.Code) error { return fmt.Errorf("x: %w", connect.NewError(code, errors.New("no"))) }
	lock := func(l *core.Locker) connect.Interceptor { return connectlock.Interceptor(l, failing(core.ErrNoKey)) }
	ownLock := func(l *core.Locker) connect.Interceptor {
		return connectlock.Interceptor(l, failing(core.ErrNoKey),
			connectlock.WithErrorHandler(func(*connectlock.Call, error) error { return coded(connect.CodeUnauthenticated) }))
	}
	another := func(l *core.Locker) connect.Interceptor {
		return connectlock.IdempotentInterceptor(l, connectlock.Literal("another"))
	}
	for name, test := range map[string]struct {
		err      error
		decision core.Ending
		inside   func(*core.Locker) connect.Interceptor
		opts     []core.Option
		want     string
	}{
		"a success":               {want: replayed},
		"NOT_FOUND":               {err: coded(connect.CodeNotFound), want: replayed},
		"ABORTED":                 {err: coded(connect.CodeAborted), want: runs},
		"UNAVAILABLE":             {err: coded(connect.CodeUnavailable), want: unknown},
		"an error without a code": {err: errors.New("no"), want: unknown},
		"the code 0":              {err: coded(0), want: unknown},
		"a timeout as NOT_FOUND":  {err: fmt.Errorf("%w: %w", coded(connect.CodeNotFound), context.DeadlineExceeded), want: unknown},
		"a decision":              {err: coded(connect.CodeUnavailable), decision: core.EndAbort, want: runs},
		"a refusal inside":        {inside: lock, want: runs},
		"a refusal of an error handler inside": {inside: ownLock, opts: []core.Option{connectlock.WithStored(func(connect.Code) bool {
			return true
		})}, want: runs},
		"ABORTED behind another one": {err: coded(connect.CodeAborted), inside: another, want: runs},
		"stored": {err: coded(connect.CodeAborted), opts: []core.Option{connectlock.WithStored(func(code connect.Code) bool {
			return code == connect.CodeAborted
		})}, want: replayed},
		"unknown": {err: coded(connect.CodeNotFound), opts: []core.Option{connectlock.WithUnknown(func(f connectlock.Failure) bool {
			return f.Code == connect.CodeNotFound && connect.CodeOf(f.Err) == f.Code && !f.Panic
		})}, want: unknown},
		"another service is unknown": {err: connectlock.ErrorOf(core.ErrOutcomeUnknown), want: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, _ := adaptertest.Locker(t)
			chain := []connect.Interceptor{connectlock.IdempotentInterceptor(locks, literal, test.opts...)}
			if test.inside != nil {
				chain = append(chain, test.inside(locks))
			}
			ran := 0
			entered := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
				return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
					ran++
					attempt, _ := core.AttemptFromContext(ctx)
					attempt.Decide(test.decision)
					return next(ctx, req)
				}
			})
			call := unary(func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
				if test.err != nil {
					return nil, test.err
				}
				return replies(ctx, req)
			}, append(chain[:1:1], append([]connect.Interceptor{entered}, chain[1:]...)...)...)
			_, first := call(t.Context(), transferOf("a"))
			_, later := call(t.Context(), transferOf("a"))
			got := replayed
			switch {
			case ran == 2:
				got = runs
			case errors.Is(later, core.ErrOutcomeUnknown):
				got = unknown
			}
			if got != test.want {
				t.Errorf("after %v: %s, %v", first, got, later)
			}
		})
	}
}

// A copy has the same message. With the metadata missing, the call runs as without the interceptor if
// the key is optional.
func TestCopiesAreTheSameCall(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	var runs atomic.Int32
	handler := func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		runs.Add(1)
		return replies(ctx, req)
	}
	required := unary(handler, connectlock.IdempotentInterceptor(locks, connectlock.IdempotencyKey()))
	optional := unary(handler, connectlock.IdempotentInterceptor(locks, connectlock.IdempotencyKey(), core.WithOptionalKey()))
	for i, step := range []struct {
		call   connect.UnaryFunc
		req    transferRequest
		reason string
		runs   int32
	}{
		{required, transferOf("a", "Idempotency-Key", "1"), "", 1},
		{required, transferOf("a", "Idempotency-Key", "1"), "", 1},
		{required, transferOf("b", "Idempotency-Key", "1"), "MISMATCH", 1},
		{required, transferOf("a"), "NO_KEY", 1},
		{required, transferOf("a", "Idempotency-Key", "1", "Idempotency-Key", "1"), "INVALID_KEY", 1},
		{optional, transferOf("a", "Idempotency-Key", "1"), "", 1},
		{optional, transferOf("a"), "", 2},
		{optional, transferOf("a", "Idempotency-Key", ""), "NO_KEY", 2},
	} {
		_, err := step.call(t.Context(), step.req)
		var own *connect.Error
		errors.As(err, &own)
		if reasonOf(own) != step.reason || runs.Load() != step.runs {
			t.Errorf("step %d: %v, %d runs", i, err, runs.Load())
		}
	}
}

// If a handler panics, the outcome is unknown, and the panic goes on. A message without protobuf has no
// fingerprint, and an answer without protobuf is not kept.
func TestCallsThatCannotBeRepeated(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	call := unary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { panic("crash") },
		connectlock.IdempotentInterceptor(locks, connectlock.Literal("panics")))
	caught := make(chan any, 1)
	func() {
		defer func() { caught <- recover() }()
		_, _ = call(t.Context(), transferOf("a"))
	}()
	if got := suite.Receive(t, "the panic", caught); got != "crash" {
		t.Errorf("panic %v", got)
	}
	if _, err := call(t.Context(), transferOf("a")); !errors.Is(err, core.ErrOutcomeUnknown) {
		t.Errorf("after a panic: %v", err)
	}
	once := connectlock.IdempotentInterceptor(locks, connectlock.Literal("text"))
	bare := connectlock.IdempotentInterceptor(locks, connectlock.Literal("text"), core.WithoutFingerprint())
	text := func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
		return connect.NewResponse(new(string)), nil
	}
	if _, err := unary(text, once)(t.Context(), connect.NewRequest(new(string))); connect.CodeOf(err) != connect.CodeInternal {
		t.Errorf("a message without protobuf: %v", err)
	}
	nothing := func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { return nil, nil }
	none := connectlock.IdempotentInterceptor(locks, connectlock.Literal("nothing"))
	for _, want := range []error{nil, core.ErrUnreplayable} {
		if _, err := unary(nothing, none)(t.Context(), transferOf("a")); !errors.Is(err, want) {
			t.Errorf("no answer: %v, want %v", err, want)
		}
		if _, err := unary(text, bare)(t.Context(), connect.NewRequest(new(string))); !errors.Is(err, want) {
			t.Errorf("an answer without protobuf: %v, want %v", err, want)
		}
	}
}

// The interceptor does not affect streams.
func TestStreamsAreNotIdempotent(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	c := serve(t, &bank{batch: func(ctx context.Context, s batchStream) error {
		runs.Add(1)
		if _, ok := core.AttemptFromContext(ctx); ok {
			t.Error("a stream runs as an attempt")
		}
		return s.Send(&pb.TransferReply{})
	}}, locked(connectlock.IdempotentInterceptor(adaptertest.UnusedLocker(t), literal)))
	for range 2 {
		_, err := batchOf(within(t), c, theKey)
		wantCode(t, err, 0)
	}
	if runs.Load() != 2 {
		t.Errorf("%d runs", runs.Load())
	}
}
