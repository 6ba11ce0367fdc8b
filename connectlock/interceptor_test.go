package connectlock_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/reqlock/reqlock/connectlock"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The calls of a client pass, also those of a stream.
func TestClientsPass(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	refuses := failing(core.ErrNoKey)
	clients := listen(t, (&bank{
		transfer: func(context.Context, transferRequest) (transferReply, error) {
			return connect.NewResponse(&pb.TransferReply{}), nil
		},
		batch: func(_ context.Context, s batchStream) error { return s.Send(&pb.TransferReply{}) },
	}).handler())
	c := clients(connect.WithInterceptors(connectlock.Interceptor(locks, refuses), connectlock.IdempotentInterceptor(locks, refuses)))
	_, err := c.transfer.CallUnary(within(t), transferOf("a"))
	wantCode(t, err, 0)
	_, err = batchOf(within(t), c, "a")
	wantCode(t, err, 0)
}

// ByMethod locks the listed methods, unary calls and streams, and no others.
func TestByMethod(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t)
	adaptertest.Hold(t, rdb)
	c := serve(t, &bank{
		transfer: func(context.Context, transferRequest) (transferReply, error) {
			return connect.NewResponse(&pb.TransferReply{}), nil
		},
		batch: func(_ context.Context, s batchStream) error {
			_, err := s.Receive()
			return errors.Join(err, s.Send(&pb.TransferReply{}))
		},
	}, locked(connectlock.Interceptor(locks, connectlock.ByMethod(map[string]connectlock.Key{
		pb.Bank_Transfer_FullMethodName: connectlock.Field[*pb.TransferRequest]("account.id"),
		pb.Bank_Batch_FullMethodName:    connectlock.Field[*pb.TransferRequest]("account.id"),
	}))))
	_, err := c.balance.CallUnary(within(t), connect.NewRequest(&pb.BalanceRequest{Account: &pb.Account{Id: theKey}}))
	wantCode(t, err, 0)
	for id, want := range map[string]connect.Code{theKey: connect.CodeAborted, "free": 0} {
		_, err = c.transfer.CallUnary(within(t), transferOf(id))
		wantCode(t, err, want)
		_, err = batchOf(within(t), c, id)
		wantCode(t, err, want)
	}
}

// Mistakes of the program are found at registration.
func TestRegistrationPanics(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	lock := func(key connectlock.Key, opts ...core.Option) func() {
		return func() { connectlock.Interceptor(locks, key, opts...) }
	}
	once := func(key connectlock.Key, opts ...core.Option) func() {
		return func() { connectlock.IdempotentInterceptor(locks, key, opts...) }
	}
	byMethod := func(method string, key connectlock.Key) func() {
		return func() { connectlock.ByMethod(map[string]connectlock.Key{method: key}) }
	}
	stream := connectlock.ByMethod(map[string]connectlock.Key{pb.Bank_Deposit_FullMethodName: literal})
	for want, register := range map[string]func(){
		"connectlock: Interceptor needs a locker":                                  func() { connectlock.Interceptor(nil, literal) },
		"connectlock: Interceptor needs a key":                                     lock(connectlock.Key{}),
		"connectlock: SharedWhen needs core.WithWait":                              lock(literal.SharedWhen(connectlock.IsRead)),
		adaptertest.ForeignOptionText:                                              lock(literal, adaptertest.ForeignOption()),
		"WithStored has no effect on Interceptor":                                  lock(literal, connectlock.WithStored(func(connect.Code) bool { return true })),
		"connectlock: IdempotentInterceptor needs a locker":                        func() { connectlock.IdempotentInterceptor(nil, literal) },
		"connectlock: IdempotentInterceptor needs a key":                           once(connectlock.Key{}),
		"IdempotentInterceptor has one key":                                        once(core.All(literal)),
		"IdempotentInterceptor: ByMethod lists /reqlock.bank.v1.Bank/Deposit, and": once(core.Join(connectlock.Procedure(), stream)),
		"write connectlock.WithStored, which chooses by codes":                     once(literal, core.WithStored(func(int) bool { return true })),
		"WithStored needs a function":                                              func() { connectlock.WithStored(nil) },
		"WithUnknown needs a function":                                             func() { connectlock.WithUnknown(nil) },
		"WithErrorHandler needs a function":                                        func() { connectlock.WithErrorHandler(nil) },
		"Message needs a function":                                                 func() { connectlock.Message[string](nil) },
		"Header needs a name":                                                      func() { connectlock.Header("") },
		"Header: X-Sum-Bin holds bytes":                                            func() { connectlock.Header("X-Sum-Bin") },
		"Literal needs a key":                                                      func() { connectlock.Literal("") },
		"ContextValue needs a key":                                                 func() { connectlock.ContextValue(nil) },
		"ContextValueAs needs a key":                                               func() { connectlock.ContextValueAs(nil, strings.Clone) },
		"ContextValueAs needs a function":                                          func() { connectlock.ContextValueAs[string](1, nil) },
		`connectlock: Field("acount.id"): `:                                        func() { connectlock.Field[*pb.TransferRequest]("acount.id") },
		`connectlock: ByMethod: "/reqlock.bank.v1.Bank/Tranfser": the service`:     byMethod("/reqlock.bank.v1.Bank/Tranfser", literal),
		`connectlock: ByMethod: "/reqlock.bank.v1.Bank/Balance": its key reads a`:  byMethod(pb.Bank_Balance_FullMethodName, connectlock.Field[*pb.TransferRequest]("account.id")),
	} {
		adaptertest.WantPanic(t, register, want)
	}
}

// The client of a handler that ends with the loss of its lease must not try again, unless nothing has
// happened. An error with a code of the handler's own stays.
func TestHandlerThatLosesItsLease(t *testing.T) {
	t.Parallel()
	ends := func(ctx context.Context) error {
		if attempt, ok := core.AttemptFromContext(ctx); ok {
			attempt.Decide(core.EndNoEffect)
		}
		return ctx.Err()
	}
	owns := func(ctx context.Context) error {
		return errors.Join(connect.NewError(connect.CodeAborted, nil), context.Cause(ctx))
	}
	transfer := func(c client) error {
		_, err := c.transfer.CallUnary(within(t), transferOf("a"))
		return err
	}
	batch := func(c client) error {
		_, err := batchOf(within(t), c, "a")
		return err
	}
	lock := func(l *core.Locker) connect.Interceptor { return connectlock.Interceptor(l, literal) }
	once := func(l *core.Locker) connect.Interceptor { return connectlock.IdempotentInterceptor(l, literal) }
	for name, test := range map[string]struct {
		interceptor func(*core.Locker) connect.Interceptor
		call        func(client) error
		handler     func(context.Context) error
		code        connect.Code
		reason      string
	}{
		"a unary call":    {lock, transfer, ends, connect.CodeUnknown, "LEASE_LOST"},
		"a stream":        {lock, batch, ends, connect.CodeUnknown, "LEASE_LOST"},
		"an attempt":      {once, transfer, ends, connect.CodeUnavailable, "UNAVAILABLE"},
		"its own code":    {lock, transfer, owns, connect.CodeAborted, ""},
		"a stream's code": {lock, batch, owns, connect.CodeAborted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t, core.WithTTL(time.Second))
			run := func(ctx context.Context) error {
				lease, _ := core.LeaseFromContext(ctx)
				locks.Expire(lease.Key())
				suite.ReceiveAnywhere(t, "the context ends", ctx.Done())
				return test.handler(ctx)
			}
			c := serve(t, &bank{
				transfer: func(ctx context.Context, _ transferRequest) (transferReply, error) { return nil, run(ctx) },
				batch:    func(ctx context.Context, _ batchStream) error { return run(ctx) },
			}, locked(test.interceptor(locks.Locker)))
			err := test.call(c)
			if wantCode(t, err, test.code); reasonOf(err) != test.reason {
				t.Errorf("%v with the reason %q", err, reasonOf(err))
			}
		})
	}
}

// A wait that is longer than the server lets a call last is reported.
func TestWaitBeyondWriteTimeoutIsReported(t *testing.T) {
	t.Parallel()
	sent := &warnings{}
	locks, _ := adaptertest.Locker(t, core.WithObserver(sent.observe))
	server := &http.Server{WriteTimeout: time.Second, ReadHeaderTimeout: time.Second}
	ctx := context.WithValue(t.Context(), http.ServerContextKey, server)
	call := unary(replies, connectlock.Interceptor(locks, literal, core.WithWait(time.Minute)))
	for range 2 {
		_, err := call(ctx, transferOf("a"))
		wantCode(t, err, 0)
	}
	if texts, _ := sent.got(); len(texts) != 1 || !strings.Contains(texts[0], "WithWait is 1m0s and WriteTimeout of the http.Server is 1s") {
		t.Errorf("the observer got %q", texts)
	}
}

// The caller of a lease of an interceptor is the code that made the interceptor.
func TestCallerIsTheCodeThatMadeTheInterceptor(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*core.Locker) connect.Interceptor{
		"a lock":     func(locks *core.Locker) connect.Interceptor { return connectlock.Interceptor(locks, literal) },
		"idempotent": func(locks *core.Locker) connect.Interceptor { return connectlock.IdempotentInterceptor(locks, literal) },
	} {
		locks := locktest.New(t, core.WithCaller(true))
		_, err := unary(func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			if err := locks.Close(ended); err == nil || !strings.Contains(err.Error(), "connectlock_test.TestCallerIsTheCodeThatMadeTheInterceptor.func") {
				t.Errorf("%s: close: %v", name, err)
			}
			return replies(ctx, req)
		}, build(locks.Locker))(t.Context(), transferOf("a"))
		wantCode(t, err, 0)
	}
}
