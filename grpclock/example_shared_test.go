package grpclock_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
)

// Calls of methods that only read run beside each other, and other calls alone.
func ExampleByMethod_shared() {
	locks, stop := exampleLocker()
	defer stop()
	defer func() { _ = locks.Close(context.Background()) }()

	var client pb.BankClient
	balance := func(ctx context.Context) error {
		_, err := client.Balance(ctx, &pb.BalanceRequest{Account: &pb.Account{Id: "42"}})
		return err
	}
	transfer := func(ctx context.Context) error {
		_, err := client.Transfer(ctx, &pb.TransferRequest{Account: &pb.Account{Id: "42"}})
		return err
	}
	first := true
	service := &reader{balance: func(ctx context.Context) {
		if first {
			first = false
			// While this call runs, the same client sends another one, and a transfer.
			fmt.Println("a read beside it:", status.Code(balance(ctx)))
			fmt.Println("a transfer beside it:", status.Code(transfer(ctx)))
		}
	}}
	var end func()
	client, end = exampleClient(service, grpclock.ServerOptions(locks, grpclock.ByMethod(map[string]grpclock.Key{
		pb.Bank_Balance_FullMethodName:  grpclock.Field[*pb.BalanceRequest]("account.id").Named("account").Shared(),
		pb.Bank_Transfer_FullMethodName: grpclock.Field[*pb.TransferRequest]("account.id").Named("account"),
	}), core.WithWait(500*time.Millisecond))...)
	defer end()

	fmt.Println("a read:", status.Code(balance(context.Background())))
	fmt.Println("a transfer after it:", status.Code(transfer(context.Background())))
	// Output:
	// a read beside it: OK
	// a transfer beside it: Aborted
	// a read: OK
	// a transfer after it: OK
}

// A reader is a bank whose balances are read.
type reader struct {
	pb.UnimplementedBankServer
	balance func(ctx context.Context)
}

func (r *reader) Balance(ctx context.Context, _ *pb.BalanceRequest) (*pb.BalanceReply, error) {
	r.balance(ctx)
	return &pb.BalanceReply{}, nil
}

func (*reader) Transfer(context.Context, *pb.TransferRequest) (*pb.TransferReply, error) {
	return &pb.TransferReply{}, nil
}
