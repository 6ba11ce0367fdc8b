package conformance

import (
	"context"
	"errors"
	"maps"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
)

// grpcLacks lists the features that gRPC does not have.
var grpcLacks = map[feature]string{
	bodyLimits:  "gRPC bounds messages itself, before an interceptor sees them",
	earlyBodies: "gRPC gives each interceptor the message",
	ownContext:  "interceptors are given their context and keep it; nothing can be restored",
	aborts:      "gRPC knows no panic that is not a crash",
	hijacking:   "gRPC gives no connection away",
	seenAnswers: "a handler of gRPC always returns an answer",
	writeLimits: "a gRPC server has neither timeout",
	methods:     "a method of gRPC does not say whether it only reads",
}

func overGRPCUnary() *framework {
	f := &framework{
		name:  "grpclock unary",
		lacks: maps.Clone(grpcLacks),
		serve: func(t *testing.T, locks *core.Locker, r route) server {
			return listenGRPC(t, grpcService{r: r}, unaryCall, grpc.ChainUnaryInterceptor(unaryChain(locks, r)...))
		},
		row:       grpcRow,
		forbidden: outcome{status: int(codes.PermissionDenied)},
		hooked:    outcome{status: int(codes.DataLoss), pushback: "1000"}, // the outcome's: it states none of its own
	}
	f.lacks[streams] = "a unary call has one answer; streams have a column of their own"
	return f
}

func overGRPCStream() *framework { return overGRPCStreams("grpclock stream", serverStream) }

func overGRPCBidi() *framework { return overGRPCStreams("grpclock bidi", bidiStream) }

func overGRPCStreams(name string, kind callKind) *framework {
	f := overGRPCUnary()
	f.name, f.lacks = name, grpcLacks
	f.serve = func(t *testing.T, locks *core.Locker, r route) server {
		return listenGRPC(t, grpcService{r: r}, kind, grpc.ChainStreamInterceptor(streamChain(locks, r)...))
	}
	return f
}

// ofGRPC reads the body of calls of all kinds.
var ofGRPC = adapter[*grpclock.Call]{
	header:      grpclock.Metadata,
	idempotency: grpclock.IdempotencyKey,
	body: func() grpclock.Key {
		const field = "response_status.message"
		return grpclock.ByMethod(map[string]grpclock.Key{
			pb.TestService_UnaryCall_FullMethodName:           grpclock.Field[*pb.SimpleRequest](field),
			pb.TestService_StreamingOutputCall_FullMethodName: grpclock.Field[*pb.StreamingOutputCallRequest](field),
			pb.TestService_FullDuplexCall_FullMethodName:      grpclock.Field[*pb.StreamingOutputCallRequest](field),
		})
	},
	hook: func(h hook) core.Option {
		return grpclock.WithErrorHandler(func(*grpclock.Call, error) error {
			if h == ownHook {
				return status.Error(codes.DataLoss, hookText)
			}
			return nil
		})
	},
}

// ofRoute returns the key of a route's lock. It is a key of one method, where the key of a
// group is one of all methods.
func ofRoute(l lock) grpclock.Key {
	return grpclock.ByMethod(map[string]grpclock.Key{
		pb.TestService_UnaryCall_FullMethodName:           ofGRPC.lockKey(l),
		pb.TestService_StreamingOutputCall_FullMethodName: ofGRPC.lockKey(l),
		pb.TestService_FullDuplexCall_FullMethodName:      ofGRPC.lockKey(l),
	})
}

func unaryChain(locks *core.Locker, r route) (chain []grpc.UnaryServerInterceptor) {
	if r.recovers {
		chain = append(chain, recoverUnary)
	}
	if r.outer != nil {
		chain = append(chain, outerUnary(r.outer))
	}
	for _, l := range r.group {
		chain = append(chain, grpclock.UnaryServerInterceptor(locks, ofGRPC.lockKey(l), ofGRPC.options(l)...))
	}
	for _, l := range r.locks {
		chain = append(chain, grpclock.UnaryServerInterceptor(locks, ofRoute(l), ofGRPC.options(l)...))
	}
	return chain
}

func streamChain(locks *core.Locker, r route) (chain []grpc.StreamServerInterceptor) {
	if r.recovers {
		chain = append(chain, recoverStream)
	}
	if r.outer != nil {
		chain = append(chain, outerStream(r.outer))
	}
	for _, l := range r.group {
		chain = append(chain, grpclock.StreamServerInterceptor(locks, ofGRPC.lockKey(l), ofGRPC.options(l)...))
	}
	for _, l := range r.locks {
		chain = append(chain, grpclock.StreamServerInterceptor(locks, ofRoute(l), ofGRPC.options(l)...))
	}
	return chain
}

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
func (c *grpcCall) Lease() (*core.Lease, bool) { return core.LeaseFromContext(c.ctx) }
func (c *grpcCall) Leases() []*core.Lease      { return core.LeasesFromContext(c.ctx) }
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
