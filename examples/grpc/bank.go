package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/reqlock/reqlock/examples/grpc/bank/v1"
)

// A bank reads balances and writes them back later. It relies on the locks of its
// methods: no other call may write a balance in between.
type bank struct {
	pb.UnimplementedBankServer
	otherBank func(context.Context) error // a slow call to another bank
	balances  sync.Map                    // of account to int64
	orders    atomic.Int64
}

func newBank(slowness time.Duration) *bank {
	b := &bank{otherBank: after(slowness)}
	for _, user := range [...]string{"ada", "bob"} {
		b.balances.Store(user, int64(100))
	}
	return b
}

// Balance reads an account.
func (b *bank) Balance(_ context.Context, m *pb.BalanceRequest) (*pb.BalanceReply, error) {
	cents, err := b.balance(m.GetAccount())
	return &pb.BalanceReply{Cents: cents}, err
}

// Transfer moves money, under the locks of both accounts.
func (b *bank) Transfer(ctx context.Context, m *pb.TransferRequest) (*pb.TransferReply, error) {
	from, err := b.balance(m.GetAccount())
	if err != nil {
		return nil, err
	}
	to, err := b.balance(m.GetPayee())
	switch {
	case err != nil:
		return nil, err
	case m.GetCents() <= 0 || m.GetAccount().GetId() == m.GetPayee().GetId():
		return nil, status.Error(codes.InvalidArgument, "not a transfer")
	case from < m.GetCents():
		return nil, status.Error(codes.FailedPrecondition, "too little money")
	}
	if err := b.settle(ctx); err != nil {
		return nil, err
	}
	b.balances.Store(m.GetAccount().GetId(), from-m.GetCents())
	b.balances.Store(m.GetPayee().GetId(), to+m.GetCents())
	return &pb.TransferReply{Cents: from - m.GetCents()}, nil
}

// Settle does the same.
func (b *bank) Settle(ctx context.Context, m *pb.TransferRequest) (*pb.TransferReply, error) {
	return b.Transfer(ctx, m)
}

// PlaceOrder orders something, under the lock of the user.
func (b *bank) PlaceOrder(ctx context.Context, _ *pb.PlaceOrderRequest) (*pb.PlaceOrderReply, error) {
	if err := b.settle(ctx); err != nil {
		return nil, err
	}
	return &pb.PlaceOrderReply{Number: b.orders.Add(1)}, nil
}

// Deposit pays coins into the account of the first message. It does nothing before
// that message, which takes the lock.
func (b *bank) Deposit(coins grpc.ClientStreamingServer[pb.DepositRequest, pb.BalanceReply]) error {
	coin, err := coins.Recv()
	account := coin.GetAccount()
	var sum int64
	for ; err == nil; coin, err = coins.Recv() {
		sum += coin.GetCents()
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	before, err := b.balance(account)
	if err != nil {
		return err
	}
	if err := b.settle(coins.Context()); err != nil {
		return err
	}
	b.balances.Store(account.GetId(), before+sum)
	return coins.SendAndClose(&pb.BalanceReply{Cents: before + sum})
}

// after returns a call that takes this long, or ends with its context.
func after(slowness time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(slowness):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settle calls another bank. It stops if the client disconnects or the lock is lost.
func (b *bank) settle(ctx context.Context) error {
	if err := b.otherBank(ctx); err != nil {
		return status.FromContextError(err).Err()
	}
	return nil
}

// balance returns the balance of an account.
func (b *bank) balance(account *pb.Account) (int64, error) {
	cents, ok := b.balances.Load(account.GetId())
	if !ok {
		return 0, status.Error(codes.NotFound, "no such account")
	}
	return cents.(int64), nil
}
