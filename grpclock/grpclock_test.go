package grpclock_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
)

// The handler's context carries the lease and ends with it; that of the
// interceptors around the lock is as it was.
func TestContext(t *testing.T) {
	t.Parallel()
	locks, rdb := newLocker(t)
	inner := make(chan context.Context, 1)
	around := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		reply, err := next(ctx, req)
		if ctx.Err() != nil {
			t.Errorf("the context around the lock has ended: %v", ctx.Err())
		}
		if (<-inner).Err() == nil {
			t.Error("the handler's context goes on after its lease")
		}
		return reply, err
	}
	client := serve(t, &bank{transfer: func(ctx context.Context, _ *pb.TransferRequest) error {
		inner <- ctx
		lease, ok := grpclock.FromContext(ctx)
		if !ok || lease.Key() != theKey {
			t.Errorf("lease of %q, %v", lease.Key(), ok)
		}
		if token := rdb.Get(ctx, "reqlock:"+theKey).Val(); token == "" || token != lease.Token() {
			t.Error("the key does not carry the lease's token")
		}
		return nil
	}}, grpc.ChainUnaryInterceptor(around, grpclock.UnaryServerInterceptor(locks, grpclock.Field[*pb.TransferRequest]("account.id"))))
	_, err := client.Transfer(within(t), transferOf(theKey))
	wantCode(t, err, codes.OK)
	if held(t, rdb) {
		t.Error("the client has its answer, and the key is held")
	}
}

// Two interceptors with the same key take one lock, and the outer one frees it.
func TestNestedSameKey(t *testing.T) {
	t.Parallel()
	var acquired atomic.Int32
	locks, rdb := newLocker(t, core.WithObserver(func(e core.Event) {
		if e.Kind == core.Acquired {
			acquired.Add(1)
		}
	}))
	between := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		reply, err := next(ctx, req)
		if !held(t, rdb) || ctx.Err() != nil {
			t.Error("the inner interceptor has freed the lock")
		}
		return reply, err
	}
	lock := grpclock.UnaryServerInterceptor(locks, literal, core.WithWait(5*time.Second))
	client := serve(t, &bank{}, grpc.ChainUnaryInterceptor(lock, between, lock))
	_, err := client.Transfer(within(t), transferOf("a"))
	wantCode(t, err, codes.OK)
	if held(t, rdb) || acquired.Load() != 1 {
		t.Errorf("held %v, %d leases", held(t, rdb), acquired.Load())
	}
}

// ErrSkip runs a call with no lock, on purpose, past a lock that is held.
func TestSkip(t *testing.T) {
	t.Parallel()
	locks, rdb := newLocker(t)
	hold(t, rdb)
	key := core.When(func(c *grpclock.Call) bool { return c.FullMethod() != pb.Bank_Balance_FullMethodName }, literal)
	client := serve(t, &bank{}, unary(locks, key))
	_, err := client.Balance(within(t), &pb.BalanceRequest{})
	wantCode(t, err, codes.OK)
	_, err = client.Transfer(within(t), transferOf("a"))
	wantCode(t, err, codes.Aborted)
}

// Transfers from a to b and from b to a exclude each other, and never wait for
// each other in a ring.
func TestAlso(t *testing.T) {
	t.Parallel()
	locks, _ := newLocker(t)
	running := map[string]*atomic.Int32{"a": {}, "b": {}}
	client := serve(t, &bank{transfer: func(ctx context.Context, m *pb.TransferRequest) error {
		from, to := m.GetAccount().GetId(), m.GetPayee().GetId()
		for _, account := range []string{from, to} {
			if running[account].Add(1) != 1 && from != to {
				t.Errorf("account %s is in two transfers", account)
			}
			defer running[account].Add(-1)
		}
		if lease, _ := grpclock.FromContext(ctx); lease.Key() != from {
			t.Errorf("the lease is that of %q, not of the first key %q", lease.Key(), from)
		}
		time.Sleep(time.Millisecond) // lets the others come in between, if they can
		return nil
	}}, unary(locks, grpclock.Field[*pb.TransferRequest]("account.id"),
		grpclock.Also(grpclock.Field[*pb.TransferRequest]("payee.id")), core.WithWait(30*time.Second)))
	var clients sync.WaitGroup
	for i := range 24 {
		pair := [...]string{"ab", "ba", "aa"}[i%3]
		clients.Go(func() {
			m := transferOf(pair[:1])
			m.Payee = &pb.Account{Id: pair[1:]}
			if _, err := client.Transfer(within(t), m); err != nil {
				t.Errorf("%s: %v", pair, err)
			}
		})
	}
	clients.Wait()
}

// One of nine calls runs, and eight do not.
func TestOneOfNineRuns(t *testing.T) {
	t.Parallel()
	locks, _ := newLocker(t)
	refused := make(chan struct{}, 9)
	var ran atomic.Int32
	client := serve(t, &bank{transfer: func(context.Context, *pb.TransferRequest) error {
		ran.Add(1)
		for range 8 {
			await(t, "the others are refused", refused)
		}
		return nil
	}}, unary(locks, grpclock.Field[*pb.TransferRequest]("account.id")))
	var clients sync.WaitGroup
	for range 9 {
		clients.Go(func() {
			if _, err := client.Transfer(within(t), transferOf("7")); err != nil {
				wantCode(t, err, codes.Aborted)
				refused <- struct{}{}
			}
		})
	}
	clients.Wait()
	if ran.Load() != 1 {
		t.Errorf("%d have run", ran.Load())
	}
}

// A method that a server does not have keeps its answer under a lock on all.
func TestUnknownMethod(t *testing.T) {
	t.Parallel()
	lost := grpclock.Metadata("x-account") // would be INVALID_ARGUMENT
	addr := listen(t, &bank{}, unary(unusedLocker(t), lost), streams(unusedLocker(t), lost))
	conn := dial(t, addr, plaintext)
	err := conn.Invoke(within(t), "/reqlock.bank.v1.Bank/Rob", &pb.BalanceRequest{}, &pb.BalanceReply{})
	wantCode(t, err, codes.Unimplemented)
}

type foreignOption struct{}

func (foreignOption) ReqlockOption() {}

func TestRegistrationPanics(t *testing.T) {
	t.Parallel()
	locks := unusedLocker(t)
	for name, test := range map[string]struct {
		register func()
		want     string
	}{
		"unary, nil locker":  {func() { grpclock.UnaryServerInterceptor(nil, literal) }, "UnaryServerInterceptor needs a locker"},
		"unary, nil key":     {func() { grpclock.UnaryServerInterceptor(locks, nil) }, "key function"},
		"stream, nil locker": {func() { grpclock.StreamServerInterceptor(nil, literal) }, "StreamServerInterceptor needs a locker"},
		"stream, nil key":    {func() { grpclock.StreamServerInterceptor(locks, nil) }, "key function"},
		"nil option":         {func() { grpclock.UnaryServerInterceptor(locks, literal, nil) }, "option is nil"},
		"foreign option": {
			func() { grpclock.UnaryServerInterceptor(locks, literal, foreignOption{}) },
			"grpclock_test.foreignOption is an option of another adapter",
		},
		"bad setting":        {func() { grpclock.UnaryServerInterceptor(locks, literal, core.WithTTL(1)) }, "WithTTL"},
		"root setting":       {func() { grpclock.StreamServerInterceptor(locks, literal, core.WithPrefix("x")) }, "WithPrefix"},
		"Also nothing":       {func() { grpclock.Also() }, "Also"},
		"Also nil":           {func() { grpclock.Also(literal, nil) }, "Also"},
		"nil error handler":  {func() { grpclock.WithErrorHandler(nil) }, "WithErrorHandler"},
		"Message":            {func() { grpclock.Message[*pb.TransferRequest](nil) }, "Message"},
		"Metadata":           {func() { grpclock.Metadata("") }, "Metadata"},
		"Metadata of bytes":  {func() { grpclock.Metadata("X-Account-Bin") }, "bytes"},
		"Literal":            {func() { grpclock.Literal("") }, "Literal"},
		"ContextValue":       {func() { grpclock.ContextValue(nil) }, "ContextValue"},
		"ContextValueAs key": {func() { grpclock.ContextValueAs(nil, func(s string) string { return s }) }, "ContextValueAs"},
		"ContextValueAs get": {func() { grpclock.ContextValueAs[string](1, nil) }, "ContextValueAs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if message := panicOf(test.register); !strings.HasPrefix(message, "reqlock: ") || !strings.Contains(message, test.want) {
				t.Errorf("panic %q does not name %s", message, test.want)
			}
		})
	}
}

// panicOf returns the text of the panic of a function, or "".
func panicOf(f func()) (message string) {
	defer func() {
		switch caught := recover().(type) {
		case string:
			message = caught
		case error:
			message = caught.Error()
		}
	}()
	f()
	return ""
}
