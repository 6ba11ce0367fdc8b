package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/reqlock/reqlock/connectlock"
	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
)

// A connectService is the service of a bank on Connect.
type connectService struct{ bank *bank }

// newConnectService returns the handlers of a bank, with its locks. Each handler has the interceptors
// of all methods: ByMethod chooses the methods that they lock.
//
// A lock comes after every interceptor that may refuse the call: otherwise a client without rights
// could block an account. A copy of a payment needs no lock, so the idempotent interceptor comes
// before the locks.
func newConnectService(bank *bank, locks *core.Locker) http.Handler {
	type byMethod = map[string]connectlock.Key
	wait := core.WithWait(10 * time.Second)

	// Locks with the same name and key exclude each other in all methods.
	payer := connectlock.Field[*pb.TransferRequest]("account.id").Named("account")
	payee := connectlock.Field[*pb.TransferRequest]("payee.id").Named("account")
	shown := connectlock.Field[*pb.BalanceRequest]("account.id").Named("account")
	self := connectlock.ContextValue(userKey{}).Named("user")
	jobs := connectlock.Literal("batch").Named("jobs")

	// A transfer with an idempotency key is a payment. A program sends it again until it has an
	// answer. A copy gets the first answer.
	once := connectlock.IdempotentInterceptor(locks, connectlock.ByMethod(byMethod{
		pb.Bank_Transfer_FullMethodName: core.Join(self, connectlock.IdempotencyKey()),
	}), core.WithOptionalKey(), wait)
	// A second transfer from or to an account is refused.
	alone := connectlock.Interceptor(locks, connectlock.ByMethod(byMethod{
		pb.Bank_Transfer_FullMethodName: core.All(payer, payee),
	}))

	// A batch job sends settlements. Three run at once, and wait for their accounts.
	batch := connectlock.Interceptor(locks, connectlock.ByMethod(byMethod{pb.Bank_Settle_FullMethodName: jobs.Permits(3)}), wait)
	inTurn := connectlock.Interceptor(locks, connectlock.ByMethod(byMethod{
		pb.Bank_Settle_FullMethodName:     core.All(payer, payee),
		pb.Bank_PlaceOrder_FullMethodName: self,
		pb.Bank_Balance_FullMethodName:    shown.Shared(),
	}), wait)

	// With generated code, this is: mux.Handle(bankv1connect.NewBankHandler(s, options))
	options := connect.WithHandlerOptions(connect.WithRecover(recovered),
		connect.WithInterceptors(connect.UnaryInterceptorFunc(authenticated), once, alone, batch, inTurn))
	s, mux := &connectService{bank}, http.NewServeMux()
	mux.Handle(pb.Bank_Transfer_FullMethodName, connect.NewUnaryHandler(pb.Bank_Transfer_FullMethodName, s.transfer, options))
	mux.Handle(pb.Bank_Settle_FullMethodName, connect.NewUnaryHandler(pb.Bank_Settle_FullMethodName, s.transfer, options))
	mux.Handle(pb.Bank_PlaceOrder_FullMethodName, connect.NewUnaryHandler(pb.Bank_PlaceOrder_FullMethodName, s.placeOrder, options))
	mux.Handle(pb.Bank_Balance_FullMethodName, connect.NewUnaryHandler(pb.Bank_Balance_FullMethodName, s.balance, options))
	return mux
}

// recovered answers INTERNAL if a handler panics. The lock was freed before.
func recovered(ctx context.Context, spec connect.Spec, _ http.Header, panicked any) error {
	slog.ErrorContext(ctx, "handler panicked", "method", spec.Procedure, "panic", panicked)
	return connect.NewError(connect.CodeInternal, errors.New("internal error"))
}

// authenticated stores the user of the call for the locks and the handlers, and refuses calls for the
// account of another user. In this example the bearer token and the account are the user's name.
func authenticated(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		user, ok := strings.CutPrefix(req.Header().Get("Authorization"), "Bearer ")
		if !ok {
			return nil, connect.NewError(connect.CodeUnauthenticated, errors.New("the user is unknown"))
		}
		if of, ok := req.Any().(interface{ GetAccount() *pb.Account }); ok && of.GetAccount().GetId() != user {
			return nil, connect.NewError(connect.CodePermissionDenied, errors.New("the account is not yours"))
		}
		return next(context.WithValue(ctx, userKey{}, user), req)
	}
}

// transfer runs under the locks of both accounts. The context ends if one of the locks is lost, so the
// handler passes it on.
func (s *connectService) transfer(ctx context.Context, r *connect.Request[pb.TransferRequest]) (*connect.Response[pb.TransferReply], error) {
	t := transfer{To: r.Msg.GetPayee().GetId(), Cents: r.Msg.GetCents()}
	made, err := s.bank.transfer(ctx, r.Msg.GetAccount().GetId(), t)
	if err != nil {
		return nil, connectError(err)
	}
	reply := connect.NewResponse(&pb.TransferReply{Cents: made.Cents})
	reply.Header().Set("Transfer-Number", strconv.FormatInt(made.Number, 10)) // the answer to a copy has it, too
	return reply, nil
}

// balance shares the lock of the account with other readers.
func (s *connectService) balance(ctx context.Context, r *connect.Request[pb.BalanceRequest]) (*connect.Response[pb.BalanceReply], error) {
	cents, err := s.bank.show(ctx, r.Msg.GetAccount().GetId())
	return connect.NewResponse(&pb.BalanceReply{Cents: cents}), connectError(err)
}

// placeOrder runs under the lock of the user.
func (s *connectService) placeOrder(ctx context.Context, r *connect.Request[pb.PlaceOrderRequest]) (*connect.Response[pb.PlaceOrderReply], error) {
	user, _ := ctx.Value(userKey{}).(string)
	number, err := s.bank.order(ctx, user, r.Msg.GetItem())
	return connect.NewResponse(&pb.PlaceOrderReply{Number: int64(number)}), connectError(err)
}

// connectError returns the error for an error of a bank.
func connectError(err error) error {
	if err == nil {
		return nil
	}
	r := refusalOf(err)
	return connect.NewError(connect.Code(r.grpc), errors.New(r.text))
}
