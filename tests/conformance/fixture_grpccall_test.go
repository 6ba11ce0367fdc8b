package conformance

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

// A grpcCall is a call of any kind.
type grpcCall struct {
	ctx    context.Context
	body   string
	pieces interface { // nil: unary
		Send(piece *pb.StreamingOutputCallResponse) error
	}
	text string
	err  error
}

func (c *grpcCall) Context() context.Context   { return c.ctx }
func (c *grpcCall) Lease() (*core.Lease, bool) { return grpclock.FromContext(c.ctx) }
func (c *grpcCall) Leases() []*core.Lease      { return grpclock.Leases(c.ctx) }
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

// grpcService answers calls of all kinds with the route's handler.
type grpcService struct {
	pb.UnimplementedTestServiceServer
	r route
}

func (s grpcService) UnaryCall(ctx context.Context, m *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	c := &grpcCall{ctx: ctx, body: m.GetResponseStatus().GetMessage()}
	s.r.handler(c)
	return &pb.SimpleResponse{Username: c.text}, c.err
}

func (s grpcService) StreamingOutputCall(
	m *pb.StreamingOutputCallRequest, pieces grpc.ServerStreamingServer[pb.StreamingOutputCallResponse],
) error {
	c := &grpcCall{ctx: pieces.Context(), body: m.GetResponseStatus().GetMessage(), pieces: pieces}
	s.r.handler(c)
	return c.err
}

// FullDuplexCall receives the one message itself.
func (s grpcService) FullDuplexCall(
	pieces grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse],
) error {
	early := pieces.Context() // as handlers do that get the context once
	m, err := pieces.Recv()
	if err != nil {
		return err
	}
	c := &grpcCall{ctx: early, body: m.GetResponseStatus().GetMessage(), pieces: pieces}
	s.r.handler(c)
	return c.err
}
