package grpclock_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// After a handler that panics, or ends its goroutine, the outcome is unknown. Exception:
// EndAbort and WithFreeOnFailure free the key. The panic goes on as it is.
func TestAttemptsThatBreak(t *testing.T) {
	t.Parallel()
	const crash = "crash"
	unknown := core.ErrOutcomeUnknown
	for how, end := range map[string]func(){"panic": func() { panic(crash) }, "Goexit": runtime.Goexit} {
		for name, test := range map[string]struct {
			decision core.Ending
			opts     []core.Option
			want     error
		}{
			"EndUndecided": {core.EndUndecided, nil, unknown},
			"EndCommit":    {core.EndCommit, nil, unknown},
			"EndDone":      {core.EndDone, nil, unknown},
			"EndAbort":     {core.EndAbort, nil, nil},
			"EndUnknown":   {core.EndUnknown, nil, unknown},
			"EndNoEffect":  {core.EndNoEffect, nil, nil},

			"WithFreeOnFailure":             {core.EndUndecided, []core.Option{core.WithFreeOnFailure()}, nil},
			"WithFreeOnFailure, EndCommit":  {core.EndCommit, []core.Option{core.WithFreeOnFailure()}, unknown},
			"WithFreeOnFailure, EndUnknown": {core.EndUnknown, []core.Option{core.WithFreeOnFailure()}, unknown},
			"WithUnknown": {core.EndUndecided, []core.Option{grpclock.WithUnknown(func(f grpclock.Failure) bool {
				return f == grpclock.Failure{Code: codes.Unknown, Panic: true}
			})}, unknown},
			"WithUnknown panics": {core.EndUndecided, []core.Option{grpclock.WithUnknown(func(grpclock.Failure) bool {
				panic(crash)
			})}, unknown},
		} {
			t.Run(how+", "+name, func(t *testing.T) {
				t.Parallel()
				locks, _ := adaptertest.Locker(t)
				interceptor := grpclock.IdempotentUnaryServerInterceptor(locks, literal, test.opts...)
				call := func(handler grpc.UnaryHandler) (any, error) {
					return interceptor(t.Context(), transferOf("a"), &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}, handler)
				}
				ended := make(chan any, 1)
				go func() {
					defer func() { ended <- recover() }()
					_, _ = call(func(ctx context.Context, _ any) (any, error) {
						attempt, _ := core.AttemptFromContext(ctx)
						attempt.Decide(test.decision)
						end()
						return nil, nil
					})
				}()
				if caught := suite.ReceiveAnywhere(t, "the handler has ended", ended); how == "panic" && caught != crash {
					t.Errorf("panic %v", caught)
				}
				_, err := call(func(context.Context, any) (any, error) { return &pb.TransferReply{}, nil })
				if !errors.Is(err, test.want) {
					t.Errorf("the next call: %v", err)
				}
			})
		}
	}
}

// If the function of an option panics, the outcome is unknown.
func TestOptionsThatPanic(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]core.Option{
		"WithUnknown": grpclock.WithUnknown(func(grpclock.Failure) bool { panic("bug") }),
		"WithStored":  grpclock.WithStored(func(codes.Code) bool { panic("bug") }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, _ := adaptertest.Locker(t)
			interceptor := grpclock.IdempotentUnaryServerInterceptor(locks, literal, opt)
			call := func(err error) (caught any, result error) {
				defer func() { caught = recover() }()
				_, result = interceptor(t.Context(), transferOf("a"), &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
					func(context.Context, any) (any, error) { return nil, err })
				return nil, result
			}
			if caught, err := call(status.Error(codes.Unavailable, "no")); caught != "bug" {
				t.Errorf("panic %v, %v", caught, err)
			}
			if _, err := call(nil); !errors.Is(err, core.ErrOutcomeUnknown) {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// If encoding a reply panics, the call is complete: a copy is refused and does not
// run.
func TestReplyThatPanics(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	interceptor := grpclock.IdempotentUnaryServerInterceptor(locks, literal)
	call := func() (caught any, err error) {
		defer func() { caught = recover() }()
		_, err = interceptor(t.Context(), transferOf("a"), &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
			func(context.Context, any) (any, error) { return brokenMessage{}, nil })
		return nil, err
	}
	if caught, err := call(); caught != "broken" {
		t.Errorf("panic %v, %v", caught, err)
	}
	if _, err := call(); !errors.Is(err, core.ErrUnreplayable) {
		t.Errorf("the next call: %v", err)
	}
}

// A brokenMessage is a message with a ProtoReflect that panics.
type brokenMessage struct{}

func (brokenMessage) ProtoReflect() protoreflect.Message { panic("broken") }

// If the client disconnects, the answer of its handler is stored before the
// interceptor returns.
func TestAnswerIsStoredAfterTheClientHasGone(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	stored := make(chan bool, 2)
	around := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		reply, err := next(ctx, req)
		attempt, fault := locks.Begin(context.WithoutCancel(ctx), adapter.Must(core.EndpointKey("", info.FullMethod, theKey)), nil)
		if fault != nil {
			t.Errorf("Begin: %v", fault)
			stored <- false
			return reply, err
		}
		_, done := attempt.Replay()
		stored <- done
		return reply, err
	}
	var runs atomic.Int32
	running := make(chan struct{})
	conn := dial(t, listen(t, counted(&runs, func(ctx context.Context, _ *pb.TransferRequest) error {
		close(running)
		suite.ReceiveAnywhere(t, "the context of the handler ends", ctx.Done())
		return nil
	}), grpc.ChainUnaryInterceptor(around,
		grpclock.IdempotentUnaryServerInterceptor(locks, literal, core.WithoutFingerprint(), core.WithClientCancel(true)))), plaintext)
	ctx, leave := context.WithCancel(within(t))
	defer leave()
	go func() {
		suite.ReceiveAnywhere(t, "the handler runs", running)
		leave()
	}()
	if first := ask(ctx, conn, transferOf("a")); first.status.Code() != codes.Canceled {
		t.Errorf("%s", first)
	}
	if !suite.ReceiveAnywhere(t, "the interceptor has returned", stored) {
		t.Error("the answer is not stored")
	}
	if later := ask(within(t), conn, transferOf("a")); !later.replayed() {
		t.Errorf("the later call is no replay: %s", later)
	}
	wantRuns(t, &runs, 1)
}
