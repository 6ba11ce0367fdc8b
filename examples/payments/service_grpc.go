package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
)

// A grpcService is the service of the bank on gRPC.
type grpcService struct {
	pb.UnimplementedBankServer
	bank *bank

	account grpc.UnaryServerInterceptor // both accounts of a transfer; the second request is refused
	inTurn  grpc.UnaryServerInterceptor // the same locks; the second request waits
	user    grpc.UnaryServerInterceptor // everything that belongs to one user; the second request waits
	reads   grpc.UnaryServerInterceptor // one account, beside other readers
	batch   grpc.UnaryServerInterceptor // the batch jobs of the bank; three run at once, and the others wait
	once    grpc.UnaryServerInterceptor // one payment of a user; a copy gets the first answer
}

// newGRPCService returns the service of a bank, with its locks. An interceptor gets
// the calls of all methods: ByMethod chooses the methods that it locks.
func newGRPCService(bank *bank, locks *core.Locker) *grpcService {
	payer := core.Named("account", grpclock.Field[*pb.TransferRequest]("account.id"))
	payee := core.Named("account", grpclock.Field[*pb.TransferRequest]("payee.id"))
	shown := core.Named("account", grpclock.Field[*pb.BalanceRequest]("account.id"))
	batch := core.Named("jobs", grpclock.Literal("batch"))
	self := core.Named("user", grpclock.ContextValueAs(userKey{}, user.Subject))
	only := func(method string, key grpclock.KeyFunc) grpclock.KeyFunc {
		return grpclock.ByMethod(map[string]grpclock.KeyFunc{method: key})
	}

	return &grpcService{
		bank: bank,
		account: grpclock.UnaryServerInterceptor(locks,
			only(pb.Bank_Transfer_FullMethodName, payer),
			grpclock.Also(only(pb.Bank_Transfer_FullMethodName, payee))),
		inTurn: grpclock.UnaryServerInterceptor(locks,
			only(pb.Bank_Settle_FullMethodName, payer),
			grpclock.Also(only(pb.Bank_Settle_FullMethodName, payee)),
			core.WithWait(10*time.Second)),
		user: grpclock.UnaryServerInterceptor(locks,
			only(pb.Bank_PlaceOrder_FullMethodName, self),
			core.WithWait(10*time.Second)),
		reads: grpclock.UnaryServerInterceptor(locks,
			only(pb.Bank_Balance_FullMethodName, core.Shared(shown)),
			core.WithWait(10*time.Second)),
		batch: grpclock.UnaryServerInterceptor(locks,
			only(pb.Bank_Settle_FullMethodName, core.Permits(3, batch)),
			core.WithWait(10*time.Second)),
		once: grpclock.IdempotentUnaryServerInterceptor(locks,
			only(pb.Bank_Transfer_FullMethodName, core.Join(self, grpclock.IdempotencyKey())),
			grpclock.WithOptionalKey(), core.WithWait(10*time.Second)),
	}
}

// server returns the server: recovery, authentication and owner check come before the
// locks, which come right before the handlers. A copy of a payment needs no lock of
// an account, so these locks come after the idempotent interceptor.
func (s *grpcService) server(outermost ...grpc.UnaryServerInterceptor) *grpc.Server {
	server := grpc.NewServer(
		grpc.WaitForHandlers(true),
		grpc.ChainUnaryInterceptor(outermost...),
		grpc.ChainUnaryInterceptor(recoverCall, authenticateCall, checkOwnerOfCall),
		grpc.ChainUnaryInterceptor(s.reads, s.batch, s.once, s.account, s.inTurn, s.user),
	)
	pb.RegisterBankServer(server, s)
	reflection.Register(server) // for grpcurl
	return server
}

// Balance only reads, so it shares the lock with other readers. It waits for a transfer.
func (s *grpcService) Balance(ctx context.Context, m *pb.BalanceRequest) (*pb.BalanceReply, error) {
	cents, err := s.bank.show(ctx, m.GetAccount().GetId())
	if err != nil {
		return nil, grpcStatusOf(err)
	}
	return &pb.BalanceReply{Cents: cents}, nil
}

// Transfer runs under the locks of both accounts. The context ends when one of
// them is lost, so it goes wherever the work goes. With an idempotency-key in its
// metadata it is a payment.
func (s *grpcService) Transfer(ctx context.Context, m *pb.TransferRequest) (*pb.TransferReply, error) {
	made, err := s.bank.transfer(ctx, m.GetAccount().GetId(), m.GetPayee().GetId(), m.GetCents())
	if err != nil {
		return nil, grpcStatusOf(err)
	}
	_ = grpc.SetHeader(ctx, metadata.Pairs( // the transfer is made, whether the client receives its number or not
		"transfer-number", strconv.Itoa(made.Number),
		"transfer-at", made.At.Format(time.RFC3339Nano),
	))
	return &pb.TransferReply{Cents: made.Cents}, nil
}

// Settle is Transfer under other locks, and one of three permits.
func (s *grpcService) Settle(ctx context.Context, m *pb.TransferRequest) (*pb.TransferReply, error) {
	return s.Transfer(ctx, m)
}

// PlaceOrder runs under the lock of the user.
func (s *grpcService) PlaceOrder(ctx context.Context, m *pb.PlaceOrderRequest) (*pb.PlaceOrderReply, error) {
	u, _ := ctx.Value(userKey{}).(user)
	number, err := s.bank.order(ctx, u.ID, m.GetItem())
	if err != nil {
		return nil, grpcStatusOf(err)
	}
	return &pb.PlaceOrderReply{Number: int64(number)}, nil
}

// grpcStatusOf returns the status of a call that the bank did not carry out.
func grpcStatusOf(err error) error {
	code := codes.Unavailable // the context has ended, and nothing was written
	switch {
	case errors.Is(err, errAmount), errors.Is(err, errSameAccount):
		code = codes.InvalidArgument
	case errors.Is(err, errNoAccount):
		code = codes.NotFound
	case errors.Is(err, errFunds):
		code = codes.FailedPrecondition
	case errors.Is(err, errBroken):
		code = codes.Internal
	}
	return status.Error(code, err.Error())
}
