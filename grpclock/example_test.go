package grpclock_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
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

// exampleClient serves a bank and returns a client of it.
func exampleClient(service pb.BankServer, opts ...grpc.ServerOption) (client pb.BankClient, stop func()) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(append(opts, grpc.WaitForHandlers(true))...)
	pb.RegisterBankServer(server, service)
	go func() { _ = server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	return pb.NewBankClient(conn), func() {
		_ = conn.Close()
		server.Stop()
	}
}

// A transfer is refused while another transfer from its account runs.
func Example() {
	locks, stop := exampleLocker()
	defer stop()

	var client pb.BankClient
	service := &bank{transfer: func(ctx context.Context, m *pb.TransferRequest) error {
		if m.GetAccount().GetId() == "42" {
			// While this transfer runs, the same client sends another transfer.
			_, again := client.Transfer(ctx, &pb.TransferRequest{Account: &pb.Account{Id: "42"}})
			fmt.Println("meanwhile:", status.Code(again), again)
			_, other := client.Transfer(ctx, &pb.TransferRequest{Account: &pb.Account{Id: "43"}})
			fmt.Println("another account:", status.Code(other))
		}
		return nil
	}}
	client, stop = exampleClient(service, grpc.UnaryInterceptor(grpclock.UnaryServerInterceptor(locks,
		grpclock.ByMethod(map[string]grpclock.Key{
			pb.Bank_Transfer_FullMethodName: grpclock.Field[*pb.TransferRequest]("account.id").Named("account"),
		}))))
	defer stop()

	_, err := client.Transfer(context.Background(), &pb.TransferRequest{Account: &pb.Account{Id: "42"}})
	fmt.Println("first:", status.Code(err))
	// Output:
	// meanwhile: Aborted rpc error: code = Aborted desc = Another request holds the lock that this one needs.
	// another account: OK
	// first: OK
}

// The first message of a stream says which account is locked; it stays locked
// until the stream ends.
func ExampleStreamServerInterceptor() {
	locks, stop := exampleLocker()
	defer stop()

	service := &bank{deposit: func(coins depositServer) error {
		cents, err := sum(coins)
		if err != nil {
			return err
		}
		lease, _ := core.LeaseFromContext(coins.Context())
		fmt.Println("under the lock", lease.Key())
		return coins.SendAndClose(&pb.BalanceReply{Cents: cents})
	}}
	client, stop := exampleClient(service, grpc.StreamInterceptor(grpclock.StreamServerInterceptor(locks,
		grpclock.ByMethod(map[string]grpclock.Key{
			pb.Bank_Deposit_FullMethodName: grpclock.Field[*pb.DepositRequest]("account.id").Named("account"),
		}))))
	defer stop()

	coins, err := client.Deposit(context.Background())
	for range 3 {
		if err == nil {
			err = coins.Send(&pb.DepositRequest{Account: &pb.Account{Id: "42"}, Cents: 5})
		}
	}
	reply, err := coins.CloseAndRecv()
	fmt.Println(reply.GetCents(), err)
	// Output:
	// under the lock account:42
	// 15 <nil>
}

// ServerOptions locks the unary methods and the streams of a server.
func ExampleServerOptions() {
	locks, stop := exampleLocker()
	defer stop()

	service := &bank{deposit: func(coins depositServer) error {
		cents, err := sum(coins)
		if err != nil {
			return err
		}
		lease, _ := core.LeaseFromContext(coins.Context())
		fmt.Println("a deposit under the lock", lease.Key())
		return coins.SendAndClose(&pb.BalanceReply{Cents: cents})
	}, transfer: func(ctx context.Context, _ *pb.TransferRequest) error {
		lease, _ := core.LeaseFromContext(ctx)
		fmt.Println("a transfer under the lock", lease.Key())
		return nil
	}}
	client, stop := exampleClient(service, grpclock.ServerOptions(locks, grpclock.ByMethod(map[string]grpclock.Key{
		pb.Bank_Transfer_FullMethodName: grpclock.Field[*pb.TransferRequest]("account.id").Named("account"),
		pb.Bank_Deposit_FullMethodName:  grpclock.Field[*pb.DepositRequest]("account.id").Named("account"),
	}))...)
	defer stop()

	_, _ = client.Transfer(context.Background(), &pb.TransferRequest{Account: &pb.Account{Id: "42"}})
	coins, err := client.Deposit(context.Background())
	if err == nil {
		_ = coins.Send(&pb.DepositRequest{Account: &pb.Account{Id: "42"}, Cents: 5})
		_, _ = coins.CloseAndRecv()
	}
	// Output:
	// a transfer under the lock account:42
	// a deposit under the lock account:42
}

// The calls of one user wait for each other, for up to two seconds. The lock
// stands behind the authentication, which identifies the user.
func ExampleUnaryServerInterceptor_perUser() {
	locks, stop := exampleLocker()
	defer stop()

	type User struct{ ID string }
	type userKey struct{}
	authenticate := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		user := &User{ID: "ada"} // from a token in the metadata
		return next(context.WithValue(ctx, userKey{}, user), req)
	}
	oneAtATime := grpclock.UnaryServerInterceptor(locks,
		grpclock.ContextValueAs(userKey{}, func(u *User) string { return u.ID }).Named("user"),
		core.WithWait(2*time.Second))

	service := &bank{transfer: func(ctx context.Context, _ *pb.TransferRequest) error {
		lease, _ := core.LeaseFromContext(ctx)
		fmt.Println("under the lock", lease.Key())
		return nil
	}}
	client, stop := exampleClient(service, grpc.ChainUnaryInterceptor(authenticate, oneAtATime))
	defer stop()

	_, err := client.Transfer(context.Background(), &pb.TransferRequest{})
	fmt.Println(status.Code(err))
	// Output:
	// under the lock user:ada
	// OK
}

// Two copies of a transfer do not run at the same time. The key contains the user, so
// that users with the same idempotency-key do not block each other.
func ExampleIdempotencyKey() {
	locks, stop := exampleLocker()
	defer stop()

	var client pb.BankClient
	submit := func(user, key string) codes.Code {
		ctx := metadata.AppendToOutgoingContext(context.Background(), "user", user, "idempotency-key", key)
		_, err := client.Transfer(ctx, &pb.TransferRequest{Account: &pb.Account{Id: user}})
		return status.Code(err)
	}
	type userKey struct{}
	authenticate := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		user := metadata.ValueFromIncomingContext(ctx, "user")[0] // from a token in the metadata
		return next(context.WithValue(ctx, userKey{}, user), req)
	}
	oneAtATime := grpclock.UnaryServerInterceptor(locks,
		core.Join(grpclock.ContextValue(userKey{}), grpclock.IdempotencyKey()).Named("transfer"))
	service := &bank{transfer: func(_ context.Context, m *pb.TransferRequest) error {
		if m.GetAccount().GetId() == "ada" {
			fmt.Println("ada again:", submit("ada", `"8e03978e"`)) // the same key, quoted
			fmt.Println("grace:", submit("grace", "8e03978e"))
		}
		return nil
	}}
	client, stop = exampleClient(service, grpc.ChainUnaryInterceptor(authenticate, oneAtATime))
	defer stop()

	fmt.Println("ada:", submit("ada", "8e03978e"))
	// Output:
	// ada again: Aborted
	// grace: OK
	// ada: OK
}

// A client that got no answer sends its transfer again, with the same key. The
// money is moved once, and each copy gets the answer of the first one.
func ExampleIdempotentUnaryServerInterceptor() {
	locks, stop := exampleLocker()
	defer stop()

	type userKey struct{}
	authenticate := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		user := metadata.ValueFromIncomingContext(ctx, "user")[0] // from a token in the metadata
		return next(context.WithValue(ctx, userKey{}, user), req)
	}
	once := grpclock.IdempotentUnaryServerInterceptor(locks, grpclock.ByMethod(map[string]grpclock.Key{
		pb.Bank_Transfer_FullMethodName: core.Join(grpclock.ContextValue(userKey{}), grpclock.IdempotencyKey()),
	}))
	service := &bank{transfer: func(_ context.Context, m *pb.TransferRequest) error {
		fmt.Println("moved:", m.GetCents())
		return nil
	}}
	client, stop := exampleClient(service, grpc.ChainUnaryInterceptor(authenticate, once))
	defer stop()

	submit := func(key string, cents int64) {
		ctx := metadata.AppendToOutgoingContext(context.Background(), "user", "ada", "idempotency-key", key)
		var header metadata.MD
		reply, err := client.Transfer(ctx, &pb.TransferRequest{Cents: cents}, grpc.Header(&header))
		fmt.Println(status.Code(err), reply.GetCents(), header.Get("idempotent-replayed"))
	}
	submit("8e03978e", 700)
	submit("8e03978e", 700)
	submit("8e03978e", 900) // another transfer, by mistake
	submit("40d543e8", 900)
	// Output:
	// moved: 700
	// OK 700 []
	// OK 700 [true]
	// FailedPrecondition 0 []
	// moved: 900
	// OK 900 []
}

// A transfer locks both of its accounts. A transfer from a to b and a transfer from b
// to a exclude each other, and do not deadlock.
func ExampleByMethod_severalKeys() {
	locks, stop := exampleLocker()
	defer stop()

	service := &bank{transfer: func(ctx context.Context, _ *pb.TransferRequest) error {
		for _, account := range []string{"account:a", "account:b", "account:c"} {
			_, err := locks.TryLock(context.Background(), account)
			fmt.Println(account, "is taken:", err != nil)
		}
		return ctx.Err()
	}}
	key := grpclock.ByMethod(map[string]grpclock.Key{
		pb.Bank_Transfer_FullMethodName: core.All(
			grpclock.Field[*pb.TransferRequest]("account.id"), grpclock.Field[*pb.TransferRequest]("payee.id")).Named("account"),
	})
	client, stop := exampleClient(service, grpclock.ServerOptions(locks, key, core.WithWait(2*time.Second))...)
	defer stop()

	_, err := client.Transfer(context.Background(), &pb.TransferRequest{
		Account: &pb.Account{Id: "b"}, Payee: &pb.Account{Id: "a"},
	})
	fmt.Println(status.Code(err))
	// Output:
	// account:a is taken: true
	// account:b is taken: true
	// account:c is taken: false
	// OK
}

// An error handler sends its own status, and leaves the rest to the default.
func ExampleWithErrorHandler() {
	locks, stop := exampleLocker()
	defer stop()

	refused := func(_ *grpclock.Call, err error) error {
		refusal, _ := core.RefusalOf(err)
		if refusal.Code != "no_key" {
			return grpclock.StatusOf(err).Err()
		}
		return status.Error(codes.Unauthenticated, "the user is unknown")
	}
	client, stop := exampleClient(&bank{}, grpc.UnaryInterceptor(grpclock.UnaryServerInterceptor(locks,
		grpclock.Metadata("x-user").Named("user"), grpclock.WithErrorHandler(refused))))
	defer stop()

	_, err := client.Transfer(context.Background(), &pb.TransferRequest{})
	fmt.Println(err)
	// Output:
	// rpc error: code = Unauthenticated desc = the user is unknown
}

// A key can be tested without a server.
func ExampleNewCall() {
	key := grpclock.Field[*pb.TransferRequest]("account.id").Named("account")
	call := grpclock.NewCall(context.Background(), pb.Bank_Transfer_FullMethodName,
		&pb.TransferRequest{Account: &pb.Account{Id: "42"}})
	read, err := key.Read(call)
	fmt.Println(read.Raw(), err)
	// Output:
	// account:42 <nil>
}
