package adaptertest

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
)

// A grpcCall is a call of either kind.
type grpcCall struct {
	ctx    context.Context
	body   string
	pieces grpc.ServerStreamingServer[pb.StreamingOutputCallResponse] // nil: unary
	text   string
	err    error
}

func (c *grpcCall) Context() context.Context   { return c.ctx }
func (c *grpcCall) Lease() (*core.Lease, bool) { return grpclock.FromContext(c.ctx) }
func (c *grpcCall) Body() (string, error)      { return c.body, nil }
func (c *grpcCall) Refuse(text string)         { c.err = status.Error(codes.Aborted, text) }
func (c *grpcCall) Hijack(string) error        { return errors.ErrUnsupported }

func (c *grpcCall) Reply(text string) {
	if c.pieces == nil {
		c.text = text
		return
	}
	c.err = c.Send(text)
}

func (c *grpcCall) Send(piece string) error {
	if c.pieces == nil {
		return errors.ErrUnsupported
	}
	return c.pieces.Send(&pb.StreamingOutputCallResponse{Payload: &pb.Payload{Body: []byte(piece)}})
}

// A grpcFrame is what an interceptor of the case sees.
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

// recoverUnary and recoverStream are the recovery that gRPC leaves to its
// users.
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
