package main

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
)

// A grpcService is the service of a bank on gRPC.
type grpcService struct {
	pb.UnimplementedBankServer
	bank *bank
}

// newGRPCService returns the server of a bank, with its locks. An interceptor gets the calls of all
// methods: ByMethod chooses the methods that it locks.
//
// A lock comes after every interceptor that may refuse the call: otherwise a client without rights
// could block an account. A copy of a payment needs no lock, so the idempotent interceptor comes
// before the locks.
func newGRPCService(bank *bank, locks *core.Locker) *grpc.Server {
	type byMethod = map[string]grpclock.Key
	wait := core.WithWait(10 * time.Second)

	// Locks with the same name and key exclude each other in all methods.
	payer := grpclock.Field[*pb.TransferRequest]("account.id").Named("account")
	payee := grpclock.Field[*pb.TransferRequest]("payee.id").Named("account")
	shown := grpclock.Field[*pb.BalanceRequest]("account.id").Named("account")
	self := grpclock.ContextValue(userKey{}).Named("user")
	jobs := grpclock.Literal("batch").Named("jobs")

	// A transfer with an idempotency key is a payment. A program sends it again until it has an
	// answer. A copy gets the first answer.
	once := grpclock.IdempotentUnaryServerInterceptor(locks, grpclock.ByMethod(byMethod{
		pb.Bank_Transfer_FullMethodName: core.Join(self, grpclock.IdempotencyKey()),
	}), core.WithOptionalKey(), wait)
	// A second transfer from or to an account is refused.
	alone := grpclock.UnaryServerInterceptor(locks, core.All(
		grpclock.ByMethod(byMethod{pb.Bank_Transfer_FullMethodName: payer}),
		grpclock.ByMethod(byMethod{pb.Bank_Transfer_FullMethodName: payee})))

	// A batch job sends settlements. Three run at once, and wait for their accounts.
	batch := grpclock.UnaryServerInterceptor(locks,
		grpclock.ByMethod(byMethod{pb.Bank_Settle_FullMethodName: jobs.Permits(3)}), wait)
	inTurn := grpclock.UnaryServerInterceptor(locks, core.All(grpclock.ByMethod(byMethod{
		pb.Bank_Settle_FullMethodName:     payer,
		pb.Bank_PlaceOrder_FullMethodName: self,
		pb.Bank_Balance_FullMethodName:    shown.Shared(),
	}), grpclock.ByMethod(byMethod{pb.Bank_Settle_FullMethodName: payee})),

		wait)

	server := grpc.NewServer(
		grpc.WaitForHandlers(true), // so that Stop returns after the last handler
		grpc.ChainUnaryInterceptor(recoverCall, authenticateCall, once, alone, batch, inTurn),
	)
	pb.RegisterBankServer(server, &grpcService{bank: bank})
	return server
}

// recoverCall answers INTERNAL if a handler panics. The lock was freed before.
func recoverCall(ctx context.Context, m any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (_ any, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			slog.ErrorContext(ctx, "handler panicked", "method", info.FullMethod, "panic", panicked)
			err = status.Error(codes.Internal, "internal error")
		}
	}()
	return next(ctx, m)
}

// authenticateCall stores the user of the call for the locks and the handlers, and refuses calls for
// the account of another user. In this example the bearer token and the account are the user's name.
func authenticateCall(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	user, ok := strings.CutPrefix(strings.Join(metadata.ValueFromIncomingContext(ctx, "authorization"), ","), "Bearer ")
	if !ok {
		return nil, status.Error(codes.Unauthenticated, "the user is unknown")
	}
	if of, ok := m.(interface{ GetAccount() *pb.Account }); ok && of.GetAccount().GetId() != user {
		return nil, status.Error(codes.PermissionDenied, "the account is not yours")
	}
	return next(context.WithValue(ctx, userKey{}, user), m)
}

// Transfer runs under the locks of both accounts. The context ends if one of the locks is lost, so
// the handler passes it on.
func (s *grpcService) Transfer(ctx context.Context, m *pb.TransferRequest) (*pb.TransferReply, error) {
	t := transfer{To: m.GetPayee().GetId(), Cents: m.GetCents()}
	made, err := s.bank.transfer(ctx, m.GetAccount().GetId(), t)
	if err != nil {
		return nil, grpcError(err)
	}
	// The answer to a copy has this header, too. The money has moved, even if the header cannot be sent.
	_ = grpc.SetHeader(ctx, metadata.Pairs("transfer-number", strconv.FormatInt(made.Number, 10)))
	return &pb.TransferReply{Cents: made.Cents}, nil
}

// Settle is Transfer under other locks.
func (s *grpcService) Settle(ctx context.Context, m *pb.TransferRequest) (*pb.TransferReply, error) {
	return s.Transfer(ctx, m)
}

// Balance shares the lock of the account with other readers.
func (s *grpcService) Balance(ctx context.Context, m *pb.BalanceRequest) (*pb.BalanceReply, error) {
	cents, err := s.bank.show(ctx, m.GetAccount().GetId())
	return &pb.BalanceReply{Cents: cents}, grpcError(err)
}

// PlaceOrder runs under the lock of the user.
func (s *grpcService) PlaceOrder(ctx context.Context, m *pb.PlaceOrderRequest) (*pb.PlaceOrderReply, error) {
	user, _ := ctx.Value(userKey{}).(string)
	number, err := s.bank.order(ctx, user, m.GetItem())
	return &pb.PlaceOrderReply{Number: int64(number)}, grpcError(err)
}

// grpcError returns the status for an error of a bank.
func grpcError(err error) error {
	if err == nil {
		return nil
	}
	r := refusalOf(err)
	return status.Error(r.grpc, r.text)
}
