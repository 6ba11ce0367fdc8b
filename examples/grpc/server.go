package main

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/grpc/bank/v1"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/protolock"
)

// rulesOfBank returns the rules that bank.proto declares. It panics if one of them does
// not fit its method. Who the user is cannot be written there.
func rulesOfBank() *protolock.Rules {
	return protolock.Must(protolock.New([]*grpc.ServiceDesc{&pb.Bank_ServiceDesc},
		protolock.Source("user", grpclock.ContextValue(userKey{}))))
}

// newServer returns the server of a bank. Authentication and permission come
// first, then the lock, then the handler.
func newServer(locks *core.Locker, rules *protolock.Rules, b *bank) *grpc.Server {
	options := []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(authenticate, mayUse),
		grpc.ChainStreamInterceptor(authenticateStream),
	}
	server := grpc.NewServer(append(options, rules.ServerOptions(locks)...)...)
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
