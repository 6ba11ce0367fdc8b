package grpclock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// lastCode is the last code that is tested. Those above 16 are unknown to gRPC.
const lastCode codes.Code = 100

// isStored says which codes are stored by default.
var isStored = map[codes.Code]bool{
	codes.OK: true, codes.InvalidArgument: true, codes.NotFound: true, codes.AlreadyExists: true,
	codes.FailedPrecondition: true, codes.OutOfRange: true, codes.Unimplemented: true,
}

// freesTheCall says which codes free the key by default. All others leave the outcome unknown.
var freesTheCall = map[codes.Code]bool{codes.PermissionDenied: true, codes.Aborted: true, codes.Unauthenticated: true}

// The results of a later copy of a call.
const (
	runsAgain    = "it runs"
	isReplayed   = "it gets the first answer"
	isUnknown    = "the outcome is unknown"
	isUnreadable = "the answer was not kept"
)

// checkNext makes a call twice, and compares the result of the second call.
func checkNext(t *testing.T, conn *grpc.ClientConn, runs *atomic.Int32, want string) {
	t.Helper()
	first := ask(within(t), conn, transferOf("a"))
	later := ask(within(t), conn, transferOf("a"))
	var got string
	switch reason := reasonOf(later.status.Err()); {
	case runs.Load() == 2:
		got = runsAgain
	case reason == "OUTCOME_UNKNOWN" && !later.replayed():
		got = isUnknown
	case reason == "COMPLETED_UNREPLAYABLE":
		got = isUnreadable
	default:
		got = isReplayed
		checkReplay(t, first, later)
	}
	if got != want {
		t.Errorf("of a copy after %s\n%s, not %s", first, got, want)
	}
}

// Each code is stored, leaves the outcome unknown, or frees the key by default. A handler,
// WithUnknown and WithStored can change that, in this order.
func TestWhichAnswersAreStored(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	for code := range lastCode + 1 {
		stores := func(isTrue bool) core.Option { return grpclock.WithStored(func(codes.Code) bool { return isTrue }) }
		uncertain := grpclock.WithUnknown(func(f grpclock.Failure) bool {
			if f.Panic || f.Code != code || status.Code(f.Err) != code || code == codes.OK {
				t.Errorf("%v: the failure is %+v", code, f)
			}
			return true
		})
		byDefault, freed, notStored, all := runsAgain, runsAgain, runsAgain, isUnknown
		switch {
		case isStored[code]:
			byDefault, freed = isReplayed, isReplayed
		case !freesTheCall[code]:
			byDefault, notStored = isUnknown, isUnknown
		}
		if code == codes.OK {
			all = isReplayed
		}
		noEffect := byDefault
		if byDefault == isUnknown {
			noEffect = runsAgain
		}
		for name, test := range map[string]struct {
			decision core.Ending
			opts     []core.Option
			want     string
		}{
			"by default":   {want: byDefault},
			"EndCommit":    {decision: core.EndCommit, want: isReplayed},
			"EndDone":      {decision: core.EndDone, want: isUnreadable},
			"EndAbort":     {decision: core.EndAbort, want: runsAgain},
			"EndUnknown":   {decision: core.EndUnknown, want: isUnknown},
			"EndNoEffect":  {decision: core.EndNoEffect, want: noEffect},
			"stored all":   {opts: []core.Option{stores(true)}, want: isReplayed},
			"stored none":  {opts: []core.Option{stores(false)}, want: notStored},
			"stored, drop": {opts: []core.Option{stores(true)}, decision: core.EndAbort, want: runsAgain},

			"free on failure": {opts: []core.Option{core.WithFreeOnFailure()}, want: freed},
			"all uncertain":   {opts: []core.Option{uncertain}, want: all},
			"both": {
				opts: []core.Option{stores(true), uncertain}, want: all,
			},
			"uncertain, drop": {opts: []core.Option{uncertain}, decision: core.EndAbort, want: runsAgain},
			"uncertain, store": {
				opts: []core.Option{uncertain}, decision: core.EndCommit, want: isReplayed,
			},
		} {
			if code > codes.Unauthenticated+1 && name != "by default" {
				continue // unknown codes are equal
			}
			t.Run(code.String()+", "+name, func(t *testing.T) {
				t.Parallel()
				var runs atomic.Int32
				key := grpclock.Literal(code.String() + name)
				checkNext(t, dial(t, listen(t, counted(&runs, func(ctx context.Context, _ *pb.TransferRequest) error {
					attempt, ok := core.AttemptFromContext(ctx)
					if !ok || attempt.Number() != 1 {
						t.Errorf("attempt %v, %v", attempt, ok)
					}
					attempt.Decide(test.decision)
					return status.Error(code, "no")
				}), idempotent(locks, key, test.opts...)), plaintext), &runs, test.want)
			})
		}
	}
}

// Errors without a status leave the outcome unknown, and so does the end of a context, whatever
// an interceptor makes of it. An answer that cannot be encoded completes the call.
func TestHowOtherAnswersAreStored(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opts  []core.Option
		reply any
		err   error
		want  string
	}{
		"an error without a status":             {err: errors.New("broken"), want: isUnknown},
		"the end of a context":                  {err: context.DeadlineExceeded, want: isUnknown},
		"a client that has gone":                {err: context.Canceled, want: isUnknown},
		"a lost lease":                          {err: core.ErrLost, want: isUnknown},
		"an error that is OK":                   {err: okError{}, want: isUnknown},
		"no message at all":                     {want: isUnreadable},
		"what is no message":                    {reply: 7, want: isUnreadable},
		"a message that protobuf does not take": {reply: transferOf("\xff"), want: isUnreadable},
		"a long message":                        {opts: []core.Option{core.WithMaxAnswer(200)}, reply: transferOf(string(make([]byte, 200))), want: isUnreadable},
		"the end of a context, as ABORTED":      {err: endedAs(codes.Aborted), want: isUnknown},
		"the end of a context, as NOT_FOUND":    {err: endedAs(codes.NotFound), want: isUnknown},
		"the end of a context, free":            {err: endedAs(codes.Aborted), opts: []core.Option{core.WithFreeOnFailure()}, want: runsAgain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, _ := adaptertest.Locker(t)
			var runs atomic.Int32
			inside := func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
				runs.Add(1)
				return test.reply, test.err
			}
			interceptor := grpclock.IdempotentUnaryServerInterceptor(locks, literal, test.opts...)
			conn := dial(t, listen(t, &bank{}, grpc.ChainUnaryInterceptor(interceptor, inside)), plaintext)
			checkNext(t, conn, &runs, test.want)
		})
	}
}

// endedAs returns a status that wraps the end of a context.
func endedAs(code codes.Code) error {
	return fmt.Errorf("%w: %w", status.Error(code, "timeout"), context.DeadlineExceeded)
}

// If a lock inside refuses the call, the key is free, unless the call ends in another way.
func TestRefusalInsideAnAttempt(t *testing.T) {
	t.Parallel()
	type chain = func(ctx context.Context, lock, run func(context.Context) (any, error)) (any, error)
	first := func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) { return lock(ctx) }
	locker, _ := adaptertest.Locker(t) // for other locks than the one that refuses
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	for name, test := range map[string]struct {
		refusal error // of the key
		inside  chain // what stands between the attempt and the lock
		want    string
	}{
		"it is INVALID_ARGUMENT": {core.ErrNoKey, first, runsAgain},
		"it is UNAVAILABLE":      {core.ErrUnavailable, first, runsAgain},
		"it is ABORTED":          {core.ErrBusy, first, runsAgain},
		"an interceptor wraps it": {core.ErrUnavailable, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			_, err := lock(ctx)
			return nil, fmt.Errorf("locked: %w", err)
		}, runsAgain},
		"it is joined with nil": {core.ErrUnavailable, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			_, err := lock(ctx)
			return nil, errors.Join(err, nil) // as with the nil of a rollback
		}, runsAgain},
		"it has one more detail": {core.ErrBusy, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			_, err := lock(ctx)
			more, _ := status.Convert(err).WithDetails(&errdetails.RequestInfo{RequestId: "7"})
			return nil, more.Err()
		}, runsAgain},
		"its code has another reason": {core.ErrNoKey, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			_, _ = lock(ctx)
			return nil, grpclock.StatusOf(core.ErrInvalidKey).Err()
		}, isReplayed},
		"another try runs": {core.ErrUnavailable, func(ctx context.Context, lock, run func(context.Context) (any, error)) (any, error) {
			_, _ = lock(ctx)
			return run(ctx)
		}, isReplayed},
		"another try fails, and the refusal is sent": {core.ErrUnavailable, func(ctx context.Context, lock, run func(context.Context) (any, error)) (any, error) {
			_, err := lock(ctx)
			_, _ = run(ctx)
			return nil, err
		}, isUnknown},
		"a fallback fails": {core.ErrUnavailable, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			_, _ = lock(ctx)
			return nil, status.Error(codes.Unavailable, "charged, perhaps")
		}, isUnknown},
		"a fallback fails, and both errors are sent": {core.ErrUnavailable, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			_, err := lock(ctx)
			return nil, errors.Join(err, errors.New("charged, perhaps"))
		}, isUnknown},
		"it has the status alone": {core.ErrNoKey, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			_, err := lock(ctx)
			return nil, status.Convert(err).Err()
		}, runsAgain},
		"it is the second one": {core.ErrUnavailable, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			_, first := lock(ctx)
			_, _ = lock(ctx)
			return nil, first
		}, runsAgain},
		"another try has run": {core.ErrUnavailable, func(ctx context.Context, lock, run func(context.Context) (any, error)) (any, error) {
			_, _ = run(ctx)
			return lock(ctx)
		}, isUnknown},
		"another try has run, and an interceptor answers": {core.ErrUnavailable, func(ctx context.Context, lock, run func(context.Context) (any, error)) (any, error) {
			_, _ = run(ctx)
			_, _ = lock(ctx)
			return nil, status.Error(codes.Aborted, "mapped")
		}, isUnknown},
		"a fallback fails, and its status has another code": {core.ErrNoKey, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			_, err := lock(ctx)
			return nil, internalError{err}
		}, isUnknown},
		"a fallback fails, and is ABORTED": {core.ErrUnavailable, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			_, _ = lock(ctx)
			return nil, status.Error(codes.Aborted, "charged, perhaps")
		}, isUnknown},
		"a try panics, and it is ABORTED": {core.ErrUnavailable, func(ctx context.Context, _, _ func(context.Context) (any, error)) (_ any, err error) {
			defer func() { _, err = recover(), status.Error(codes.Aborted, "charged, perhaps") }()
			return grpclock.UnaryServerInterceptor(locker, grpclock.Literal("panics"))(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
				func(context.Context, any) (any, error) { panic("a bug") })
		}, isUnknown},
		"a timeout below another error": {core.ErrUnavailable, func(context.Context, func(context.Context) (any, error), func(context.Context) (any, error)) (any, error) {
			return nil, fmt.Errorf("%w: %w %w", status.Error(codes.Aborted, "paused"), &url.Error{Err: io.EOF}, &url.Error{Err: os.ErrDeadlineExceeded})
		}, isUnknown},
		"another try runs, and another service refuses": {core.ErrNoKey, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			_, refused := lock(ctx)
			return grpclock.UnaryServerInterceptor(locker, grpclock.Literal("ran"))(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
				func(context.Context, any) (any, error) {
					return nil, status.FromProto(status.Convert(refused).Proto()).Err()
				})
		}, isUnknown},
		"another try runs beside it, and another service refuses": {core.ErrNoKey, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			return grpclock.UnaryServerInterceptor(locker, grpclock.Literal("beside"))(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
				func(context.Context, any) (any, error) {
					_, refused := lock(ctx) // of the try beside this one
					return nil, status.FromProto(status.Convert(refused).Proto()).Err()
				})
		}, isUnknown},
		"a call to another service is unknown": {core.ErrUnavailable, func(context.Context, func(context.Context) (any, error), func(context.Context) (any, error)) (any, error) {
			return nil, grpclock.StatusOf(core.ErrOutcomeUnknown).Err()
		}, isUnknown},
		"a call to another service ends late": {core.ErrUnavailable, func(context.Context, func(context.Context) (any, error), func(context.Context) (any, error)) (any, error) {
			return nil, fmt.Errorf("%w: %w", status.Error(codes.Aborted, "paused"), status.Error(codes.DeadlineExceeded, "charged, perhaps"))
		}, isUnknown},
		"another try still runs": {core.ErrUnavailable, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			runs := make(chan struct{})
			go func() {
				_, _ = grpclock.UnaryServerInterceptor(locker, grpclock.Literal("other"))(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
					func(context.Context, any) (any, error) { close(runs); <-end; return nil, nil })
			}()
			<-runs
			return lock(ctx)
		}, isUnknown},
		"a timeout while it still runs": {core.ErrUnavailable, func(ctx context.Context, _, _ func(context.Context) (any, error)) (any, error) {
			runs := make(chan struct{})
			go func() {
				_, _ = grpclock.UnaryServerInterceptor(locker, grpclock.Literal("another"))(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
					func(context.Context, any) (any, error) { close(runs); <-end; return nil, nil })
			}()
			<-runs
			return nil, status.Error(codes.Aborted, "too slow")
		}, isUnknown},
		"a lock in a lock": {core.ErrNoKey, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			return grpclock.UnaryServerInterceptor(locker, grpclock.Literal("outer"))(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
				func(ctx context.Context, _ any) (any, error) { return lock(ctx) })
		}, runsAgain},
		"an attempt inside": {core.ErrNoKey, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			return grpclock.IdempotentUnaryServerInterceptor(locker, grpclock.Literal("inner"))(ctx, transferOf("a"), &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
				func(ctx context.Context, _ any) (any, error) { return lock(ctx) })
		}, runsAgain},
		"an attempt inside that is uncertain": {core.ErrNoKey, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			return grpclock.IdempotentUnaryServerInterceptor(locker, grpclock.Literal("uncertain"))(ctx, transferOf("a"), &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
				func(ctx context.Context, _ any) (any, error) {
					attempt, _ := core.AttemptFromContext(ctx)
					attempt.Decide(core.EndUnknown)
					return lock(ctx)
				})
		}, isUnknown},
		"a replay inside": {core.ErrUnavailable, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			paid := grpclock.IdempotentUnaryServerInterceptor(locker, grpclock.Literal("paid"), core.WithoutFingerprint())
			for _, ctx := range []context.Context{context.Background(), ctx} {
				_, _ = paid(ctx, transferOf("a"), &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
					func(context.Context, any) (any, error) { return &pb.TransferReply{}, nil })
			}
			return lock(ctx)
		}, isUnknown},
		"a fallback fails, and both ABORTED": {core.ErrUnavailable, func(ctx context.Context, lock, _ func(context.Context) (any, error)) (any, error) {
			_, err := lock(ctx)
			return nil, errors.Join(status.Error(codes.Aborted, "charged, perhaps"), err)
		}, isUnknown},
		"an older refusal is sent": {core.ErrUnavailable, func(ctx context.Context, lock, run func(context.Context) (any, error)) (any, error) {
			_, err := lock(ctx)
			_, _ = run(ctx)
			_, _ = lock(ctx)
			return nil, err
		}, isUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, _ := adaptertest.Locker(t)
			refusing := failing(test.refusal)
			info := &grpc.UnaryServerInfo{FullMethod: pb.Bank_Transfer_FullMethodName}
			var runs atomic.Int32
			handler := func(context.Context, any) (any, error) { return &pb.TransferReply{}, nil }
			lock := func(ctx context.Context) (any, error) {
				return grpclock.UnaryServerInterceptor(locks, refusing)(ctx, transferOf("a"), info, handler)
			}
			run := func(ctx context.Context) (any, error) {
				return grpclock.UnaryServerInterceptor(locks, grpclock.Literal("account"))(ctx, transferOf("a"), info, handler)
			}
			inside := func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
				runs.Add(1)
				return test.inside(ctx, lock, run)
			}
			interceptor := grpclock.IdempotentUnaryServerInterceptor(locks, literal)
			conn := dial(t, listen(t, &bank{}, grpc.ChainUnaryInterceptor(interceptor, inside)), plaintext)
			checkNext(t, conn, &runs, test.want)
		})
	}
}

// A refusal beside a try that runs is late, and one inside that try is not. Late refusals count
// also with a WithUnknown of the application.
func TestRefusalBesideATryThatFails(t *testing.T) {
	t.Parallel()
	info := &grpc.UnaryServerInfo{FullMethod: pb.Bank_Transfer_FullMethodName}
	for name, test := range map[string]struct {
		try    func(*core.Locker) grpc.UnaryServerInterceptor
		beside bool
		want   string
	}{
		"beside it": {func(l *core.Locker) grpc.UnaryServerInterceptor {
			return grpclock.UnaryServerInterceptor(l, grpclock.Literal("try"))
		}, true, isUnknown},
		"inside it": {func(l *core.Locker) grpc.UnaryServerInterceptor {
			return grpclock.UnaryServerInterceptor(l, grpclock.Literal("try"))
		}, false, runsAgain},
		"inside an attempt": {func(l *core.Locker) grpc.UnaryServerInterceptor {
			return grpclock.IdempotentUnaryServerInterceptor(l, grpclock.Literal("try"))
		}, false, runsAgain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, _ := adaptertest.Locker(t)
			var runs atomic.Int32
			lock := grpclock.UnaryServerInterceptor(locks, failing(core.ErrBusy))
			try := test.try(locks)
			inside := func(outer context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				runs.Add(1)
				return try(outer, m, info, func(ctx context.Context, m any) (any, error) {
					if test.beside {
						ctx = outer
					}
					_, _ = lock(ctx, m, info, next)
					return nil, status.Error(codes.Aborted, "charged, perhaps")
				})
			}
			own := grpclock.WithUnknown(func(f grpclock.Failure) bool { return f.Code != codes.Aborted })
			interceptor := grpclock.IdempotentUnaryServerInterceptor(locks, literal, own)
			conn := dial(t, listen(t, &bank{}, grpc.ChainUnaryInterceptor(interceptor, inside)), plaintext)
			checkNext(t, conn, &runs, test.want)
		})
	}
}

// The handler runs under the attempt's lease, and its context has the same gRPC
// values as without the interceptor.
func TestContextOfAttempts(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	client := serve(t, &bank{transfer: func(ctx context.Context, _ *pb.TransferRequest) error {
		attempt, _ := core.AttemptFromContext(ctx)
		lease, ok := core.LeaseFromContext(ctx)
		if !ok || lease != attempt.Lease() {
			t.Errorf("lease %v, %v; the lease of the attempt is %v", lease, ok, attempt.Lease())
		}
		if md := metadata.ValueFromIncomingContext(ctx, "idempotency-key"); len(md) != 1 {
			t.Errorf("incoming metadata %v", md)
		}
		if stream := grpc.ServerTransportStreamFromContext(ctx); stream.Method() != pb.Bank_Transfer_FullMethodName {
			t.Errorf("a stream of %q", stream.Method())
		}
		if _, ok := ctx.Deadline(); ok {
			t.Error("the deadline of the client ends the handler")
		}
		return nil
	}}, idempotent(locks, grpclock.IdempotencyKey()))
	_, err := client.Transfer(marked(t, "a"), transferOf("a"))
	wantCode(t, err, codes.OK)
	if _, ok := core.AttemptFromContext(t.Context()); ok {
		t.Error("an attempt out of nothing")
	}
}

// Several goroutines of a handler may set metadata.
func TestMetadataFromSeveralGoroutines(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	var runs atomic.Int32
	conn := dial(t, listen(t, counted(&runs, func(ctx context.Context, _ *pb.TransferRequest) error {
		var parts sync.WaitGroup
		for range 20 {
			parts.Go(func() { _ = grpc.SetHeader(ctx, metadata.Pairs("x-part", "1")) })
			parts.Go(func() { _ = grpc.SetTrailer(ctx, metadata.Pairs("x-part", "1")) })
		}
		parts.Wait()
		return nil
	}), idempotent(locks, literal)), plaintext)
	first, later := ask(within(t), conn, transferOf("a")), ask(within(t), conn, transferOf("a"))
	checkReplay(t, first, later)
	if len(later.header["x-part"]) != 20 || len(later.trailer["x-part"]) != 20 {
		t.Errorf("%s", later)
	}
}

// Without a transport stream, as in a test of a handler, only metadata does not work.
func TestAttemptsWithoutAServer(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	interceptor := grpclock.IdempotentUnaryServerInterceptor(locks, literal)
	for range 2 {
		reply, err := interceptor(t.Context(), transferOf("a"), &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
			func(ctx context.Context, _ any) (any, error) {
				if grpc.SetHeader(ctx, metadata.Pairs("a", "b")) == nil {
					t.Error("a header was set on nothing")
				}
				return &pb.TransferReply{Cents: 7}, nil
			})
		if m, ok := reply.(*pb.TransferReply); err != nil || !ok || m.GetCents() != 7 {
			t.Errorf("%v, %v", reply, err)
		}
	}
}

// A code that frees the key says nothing if the context of the attempt had ended before.
func TestCodeAfterTheEndOfTheContext(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	interceptor := grpclock.IdempotentUnaryServerInterceptor(locks, literal, core.WithClientCancel(true))
	call := func() error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := interceptor(ctx, transferOf("a"), &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}, func(context.Context, any) (any, error) {
			cancel()
			return nil, status.Error(codes.Aborted, "no lock any more")
		})
		return err
	}
	if err := call(); status.Code(err) != codes.Aborted {
		t.Errorf("the first call: %v", err)
	}
	if err := call(); reasonOf(err) != "OUTCOME_UNKNOWN" {
		t.Errorf("the next call: %v", err)
	}
}

// An internalError is sent as INTERNAL, whatever it wraps.
type internalError struct{ error }

// GRPCStatus returns the status.
func (internalError) GRPCStatus() *status.Status { return status.New(codes.Internal, "") }

// Unwrap returns the cause.
func (e internalError) Unwrap() error { return e.error }
