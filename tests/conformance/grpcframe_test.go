package conformance

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A grpcFrame is what an interceptor of the case gets.
type grpcFrame struct {
	ctx  context.Context
	next func(ctx context.Context)
}

func (f *grpcFrame) Context() context.Context       { return f.ctx }
func (f *grpcFrame) SetContext(ctx context.Context) { f.ctx = ctx }
func (f *grpcFrame) Next()                          { f.next(f.ctx) }

func outerUnary(outer func(frame)) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (reply any, err error) {
		outer(&grpcFrame{ctx, func(ctx context.Context) { reply, err = next(ctx, m) }})
		return reply, err
	}
}

func outerStream(outer func(frame)) grpc.StreamServerInterceptor {
	return func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
		outer(&grpcFrame{s.Context(), func(ctx context.Context) { err = next(srv, framedStream{s, ctx}) }})
		return err
	}
}

// A framedStream has the context that a frame has set.
type framedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s framedStream) Context() context.Context { return s.ctx }

// recoverUnary and recoverStream are recovery interceptors: gRPC has none of its own.
func recoverUnary(
	ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler,
) (reply any, err error) {
	defer recovered(&err)
	return next(ctx, m)
}

func recoverStream(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer recovered(&err)
	return next(srv, s)
}

func recovered(err *error) {
	if recover() != nil {
		*err = status.Error(codes.Internal, "crashed")
	}
}
