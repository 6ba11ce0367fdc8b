package main

import (
	"context"
	"log/slog"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/reqlock/reqlock/examples/bankpb"
)

// recoverCall answers INTERNAL if a handler panics. The lock was freed before the
// panic arrives here. The outcome of a payment is unknown then, and its copies are
// refused.
func recoverCall(ctx context.Context, m any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (_ any, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			slog.ErrorContext(ctx, "handler panicked", "method", info.FullMethod, "panic", panicked)
			err = status.Error(codes.Internal, "internal error")
		}
	}()
	return next(ctx, m)
}

// authenticateCall stores the user of the call in its context.
func authenticateCall(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	u, ok := bearer(firstOf(ctx, "authorization"))
	if !ok {
		return nil, status.Error(codes.Unauthenticated, "the user is unknown")
	}
	return next(context.WithValue(ctx, userKey{}, u), m)
}

// checkOwnerOfCall refuses calls for the account of another user. An account has the
// name of its owner.
func checkOwnerOfCall(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	u, _ := ctx.Value(userKey{}).(user)
	of, ok := m.(interface{ GetAccount() *pb.Account })
	if ok && of.GetAccount().GetId() != u.ID {
		return nil, status.Error(codes.PermissionDenied, "the account is not yours")
	}
	return next(ctx, m)
}

// firstOf returns the first value of a name in the metadata of a call, or "".
func firstOf(ctx context.Context, name string) string {
	if values := metadata.ValueFromIncomingContext(ctx, name); len(values) > 0 {
		return values[0]
	}
	return ""
}
