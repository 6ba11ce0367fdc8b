package main

import (
	"context"
	"strings"
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

// newServer returns the server of a bank. Authentication and permission come
// first, then the lock, then the handler.
func newServer(locks *core.Locker, b *bank) *grpc.Server {
	account := core.Named("account", grpclock.Field[*pb.TransferRequest]("account.id"))
	payee := core.Named("account", grpclock.Field[*pb.TransferRequest]("payee.id"))
	user := core.Named("user", grpclock.ContextValueAs(userKey{}, func(name string) string { return name }))

	// Two transfers at the same time are a mistake: the second call is refused with
	// ABORTED. Balance is not listed, and runs without a lock.
	atOnce := grpclock.UnaryServerInterceptor(locks,
		grpclock.ByMethod(map[string]grpclock.KeyFunc{pb.Bank_Transfer_FullMethodName: account}),
		grpclock.Also(grpclock.ByMethod(map[string]grpclock.KeyFunc{pb.Bank_Transfer_FullMethodName: payee})))

	// Settlements and the orders of one user wait for each other instead.
	inTurn := grpclock.UnaryServerInterceptor(locks,
		grpclock.ByMethod(map[string]grpclock.KeyFunc{
			pb.Bank_Settle_FullMethodName:     account,
			pb.Bank_PlaceOrder_FullMethodName: user,
		}),
		grpclock.Also(grpclock.ByMethod(map[string]grpclock.KeyFunc{pb.Bank_Settle_FullMethodName: payee})),
		core.WithWait(5*time.Second))

	// A transfer with an idempotency-key is made once, even if it is sent several
	// times.
	once := grpclock.IdempotentUnaryServerInterceptor(locks,
		grpclock.ByMethod(map[string]grpclock.KeyFunc{
			pb.Bank_Transfer_FullMethodName: core.Join(user, grpclock.IdempotencyKey()),
		}),
		grpclock.WithOptionalKey(), core.WithWait(5*time.Second))

	// The first message names the account of the stream.
	coins := grpclock.StreamServerInterceptor(locks,
		grpclock.ByMethod(map[string]grpclock.KeyFunc{
			pb.Bank_Deposit_FullMethodName: core.Named("account", grpclock.Field[*pb.DepositRequest]("account.id")),
		}),
		core.WithWait(5*time.Second))

	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(authenticate, mayUse, once, atOnce, inTurn),
		grpc.ChainStreamInterceptor(authenticateStream, coins),
	)
	pb.RegisterBankServer(server, b)
	reflection.Register(server) // for grpcurl
	return server
}

// userKey is the key of the user's name in the context of a call.
type userKey struct{}

// userOf returns the user of the token in the metadata of a call.
func userOf(ctx context.Context) (string, error) {
	tokens := map[string]string{"Bearer ada-token": "ada", "Bearer bob-token": "bob"}
	for _, token := range metadata.ValueFromIncomingContext(ctx, "authorization") {
		if user, ok := tokens[token]; ok {
			return user, nil
		}
	}
	return "", status.Error(codes.Unauthenticated, "the user is unknown")
}

func authenticate(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	user, err := userOf(ctx)
	if err != nil {
		return nil, err
	}
	return next(context.WithValue(ctx, userKey{}, user), req)
}

func authenticateStream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if _, err := userOf(ss.Context()); err != nil && !strings.HasPrefix(info.FullMethod, "/grpc.reflection.") {
		return err
	}
	return next(srv, ss)
}

// mayUse refuses requests for the account of another user, before the lock.
func mayUse(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	m, ok := req.(interface{ GetAccount() *pb.Account })
	if ok && m.GetAccount().GetId() != ctx.Value(userKey{}) {
		return nil, status.Error(codes.PermissionDenied, "not your account")
	}
	return next(ctx, req)
}
