package connectlock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"connectrpc.com/connect"
	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/connectlock"
	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
)

// exampleLocker stands for core.New with the client of your Redis.
func exampleLocker() (locks *core.Locker, stop func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	return core.Must(core.New(rdb, core.WithCommandTimeout(2*time.Second))), func() {
		_ = rdb.Close()
		server.Close()
	}
}

// exampleClient serves a bank, as the constructor in generated code does, and returns a client of it.
func exampleClient(b *bank, opts ...connect.HandlerOption) (c client, stop func()) {
	server := httptest.NewUnstartedServer(b.handler(opts...))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	transport := &http.Transport{Protocols: server.Config.Protocols}
	return clientOf(&http.Client{Transport: transport}, server.URL), func() {
		transport.CloseIdleConnections()
		server.Close()
	}
}

// A transfer is refused while another transfer from its account runs.
func Example() {
	locks, stop := exampleLocker()
	defer stop()

	var c client
	b := &bank{transfer: func(ctx context.Context, r transferRequest) (transferReply, error) {
		if r.Msg.GetAccount().GetId() == "42" {
			// While this transfer runs, the same client sends another transfer.
			_, again := c.transfer.CallUnary(ctx, transferOf("42"))
			fmt.Println("meanwhile:", again)
			_, other := c.transfer.CallUnary(ctx, transferOf("43"))
			fmt.Println("another account:", other)
		}
		return connect.NewResponse(&pb.TransferReply{}), nil
	}}
	key := connectlock.ByMethod(map[string]connectlock.Key{
		pb.Bank_Transfer_FullMethodName: connectlock.Field[*pb.TransferRequest]("account.id").Named("account"),
	})
	c, stopServer := exampleClient(b, connect.WithInterceptors(connectlock.Interceptor(locks, key)))
	defer stopServer()

	_, err := c.transfer.CallUnary(context.Background(), transferOf("42"))
	fmt.Println("first:", err)
	// Output:
	// meanwhile: aborted: Another request holds the lock that this one needs.
	// another account: <nil>
	// first: <nil>
}

// The first message of a stream says which account is locked; it stays locked until the stream ends.
func ExampleInterceptor_stream() {
	locks, stop := exampleLocker()
	defer stop()

	b := &bank{deposit: func(ctx context.Context, s depositStream) (*connect.Response[pb.BalanceReply], error) {
		cents := int64(0)
		for s.Receive() {
			cents += s.Msg().GetCents()
		}
		lease, _ := core.LeaseFromContext(ctx)
		fmt.Println("under the lock", lease.Key())
		return connect.NewResponse(&pb.BalanceReply{Cents: cents}), s.Err()
	}}
	account := connectlock.Field[*pb.DepositRequest]("account.id").Named("account")
	c, stopServer := exampleClient(b, connect.WithInterceptors(connectlock.Interceptor(locks, account)))
	defer stopServer()

	s := c.deposit.CallClientStream(context.Background())
	for range 3 {
		_ = s.Send(&pb.DepositRequest{Account: &pb.Account{Id: "42"}, Cents: 5})
	}
	reply, err := s.CloseAndReceive()
	fmt.Println(reply.Msg.GetCents(), err)
	// Output:
	// under the lock account:42
	// 15 <nil>
}

// A client that got no answer sends its transfer again, with the same key. The money is moved once, and
// each copy gets the answer of the first one.
func ExampleIdempotentInterceptor() {
	locks, stop := exampleLocker()
	defer stop()

	type userKey struct{}
	authenticate := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			return next(context.WithValue(ctx, userKey{}, "ada"), req) // from a token in the header
		}
	})
	once := connectlock.IdempotentInterceptor(locks, connectlock.ByMethod(map[string]connectlock.Key{
		pb.Bank_Transfer_FullMethodName: core.Join(connectlock.ContextValue(userKey{}), connectlock.IdempotencyKey()),
	}))
	b := &bank{transfer: func(_ context.Context, r transferRequest) (transferReply, error) {
		fmt.Println("moved from", r.Msg.GetAccount().GetId())
		return connect.NewResponse(&pb.TransferReply{Cents: 100}), nil
	}}
	c, stopServer := exampleClient(b, connect.WithInterceptors(authenticate, once))
	defer stopServer()

	submit := func(key, account string) {
		reply, err := c.transfer.CallUnary(context.Background(), transferOf(account, "Idempotency-Key", key))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(reply.Msg.GetCents(), reply.Header()["Idempotent-Replayed"])
	}
	submit("8e03978e", "42")
	submit("8e03978e", "42")
	submit("8e03978e", "43") // another transfer, by mistake
	// Output:
	// moved from 42
	// 100 []
	// 100 [true]
	// failed_precondition: The idempotency key was used before for another request.
}

// An error handler sends its own error, and leaves the rest to the default.
func ExampleWithErrorHandler() {
	locks, stop := exampleLocker()
	defer stop()

	refused := func(_ *connectlock.Call, err error) error {
		refusal, _ := core.RefusalOf(err)
		if refusal.Code != "no_key" {
			return connectlock.ErrorOf(err)
		}
		return connect.NewError(connect.CodeUnauthenticated, errors.New("the user is unknown"))
	}
	c, stopServer := exampleClient(&bank{}, connect.WithInterceptors(connectlock.Interceptor(locks,
		connectlock.Header("X-User").Named("user"), connectlock.WithErrorHandler(refused))))
	defer stopServer()

	_, err := c.transfer.CallUnary(context.Background(), transferOf("42"))
	fmt.Println(err)
	// Output:
	// unauthenticated: the user is unknown
}

// A key can be tested without a server.
func ExampleNewCall() {
	key := connectlock.Field[*pb.TransferRequest]("account.id").Named("account")
	call := connectlock.NewCall(context.Background(), connect.Spec{Procedure: pb.Bank_Transfer_FullMethodName}, connect.Peer{}, nil,
		&pb.TransferRequest{Account: &pb.Account{Id: "42"}})
	read, err := key.Read(call)
	fmt.Println(read.Raw(), err)
	// Output:
	// account:42 <nil>
}
