package conformance

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"path"
	"testing"

	"connectrpc.com/connect"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/connectlock"
	"github.com/reqlock/reqlock/core"
)

// connectLacks lists the features that Connect does not have.
var connectLacks = map[feature]string{
	bodyLimits:  "Connect bounds messages itself, before an interceptor sees them",
	earlyBodies: "Connect gives each interceptor the message",
	ownContext:  "interceptors are given their context and keep it; nothing can be restored",
	hijacking:   "Connect gives no connection away",
	seenAnswers: "a handler of Connect always returns an answer",
	writeLimits: "Connect receives the message before the lock",
}

// overConnect is a unary call on Connect's own protocol.
func overConnect() *framework {
	f := overConnectStreams("connectlock", unaryCall, connect.WithProtoJSON())
	delete(f.lacks, methods)
	f.lacks[streams] = "a unary call has one answer; streams have a column of their own"
	return f
}

func overConnectStream() *framework {
	return overConnectStreams("connectlock stream", serverStream, connect.WithGRPCWeb())
}

func overConnectBidi() *framework {
	return overConnectStreams("connectlock bidi", bidiStream, connect.WithGRPC())
}

func overConnectStreams(name string, kind callKind, protocol connect.ClientOption) *framework {
	f := &framework{
		name:  name,
		lacks: maps.Clone(connectLacks),
		serve: func(t *testing.T, locks *core.Locker, r route) server {
			return listenConnect(t, connectRoute(locks, r), kind, protocol)
		},
		row:       grpcRow,
		forbidden: outcome{status: int(connect.CodePermissionDenied)},
		hooked:    outcome{status: int(connect.CodeDataLoss)},
		failure:   func(f frame) error { return f.(*connectFrame).err },
	}
	f.lacks[methods] = "the method of a column reads and writes"
	return f
}

// ofConnect reads the body of calls of all kinds.
var ofConnect = adapter[*connectlock.Call]{
	header:      connectlock.Header,
	idempotency: connectlock.IdempotencyKey,
	body: func() connectlock.Key {
		const field = "response_status.message"
		return connectlock.ByMethod(map[string]connectlock.Key{
			pb.TestService_UnaryCall_FullMethodName:           connectlock.Field[*pb.SimpleRequest](field),
			pb.TestService_StreamingOutputCall_FullMethodName: connectlock.Field[*pb.StreamingOutputCallRequest](field),
			pb.TestService_FullDuplexCall_FullMethodName:      connectlock.Field[*pb.StreamingOutputCallRequest](field),
		})
	},
	isRead: connectlock.IsRead,
	hook: func(h hook) core.Option {
		return connectlock.WithErrorHandler(func(*connectlock.Call, error) error {
			if h == ownHook {
				return connect.NewError(connect.CodeDataLoss, errors.New(hookText))
			}
			return nil
		})
	},
}

// connectRoute returns the handler of a route's methods.
func connectRoute(locks *core.Locker, r route) http.Handler {
	var chain []connect.Interceptor
	if r.outer != nil {
		chain = append(chain, outerConnect(r.outer))
	}
	for _, l := range r.group {
		chain = append(chain, connectlock.Interceptor(locks, ofConnect.lockKey(l), ofConnect.options(l)...))
	}
	for _, l := range r.locks { // a key of one method, where the key of a group is one of all methods
		key := connectlock.ByMethod(map[string]connectlock.Key{
			pb.TestService_UnaryCall_FullMethodName:           ofConnect.lockKey(l),
			pb.TestService_CacheableUnaryCall_FullMethodName:  ofConnect.lockKey(l),
			pb.TestService_StreamingOutputCall_FullMethodName: ofConnect.lockKey(l),
			pb.TestService_FullDuplexCall_FullMethodName:      ofConnect.lockKey(l),
		})
		chain = append(chain, connectlock.Interceptor(locks, key, ofConnect.options(l)...))
	}
	var recovery []connect.HandlerOption
	if r.recovers {
		recovery = append(recovery, connect.WithRecover(func(context.Context, connect.Spec, http.Header, any) error {
			return connect.NewError(connect.CodeInternal, errors.New("crashed"))
		}))
	}
	with := func(procedure string) connect.HandlerOption {
		service := pb.File_grpc_testing_test_proto.Services().ByName("TestService")
		return connect.WithHandlerOptions(connect.WithSchema(service.Methods().ByName(protoreflect.Name(path.Base(procedure)))),
			connect.WithHandlerOptions(recovery...), connect.WithInterceptors(chain...))
	}
	s := connectService{r}
	mux := http.NewServeMux()
	for procedure, handler := range map[string]func(procedure string) http.Handler{
		pb.TestService_UnaryCall_FullMethodName: func(p string) http.Handler { return connect.NewUnaryHandler(p, s.unaryCall, with(p)) },
		pb.TestService_CacheableUnaryCall_FullMethodName: func(p string) http.Handler {
			return connect.NewUnaryHandler(p, s.unaryCall, with(p), connect.WithIdempotency(connect.IdempotencyNoSideEffects))
		},
		pb.TestService_StreamingOutputCall_FullMethodName: func(p string) http.Handler {
			return connect.NewServerStreamHandler(p, s.streamingOutputCall, with(p))
		},
		pb.TestService_FullDuplexCall_FullMethodName: func(p string) http.Handler {
			return connect.NewBidiStreamHandler(p, s.fullDuplexCall, with(p))
		},
	} {
		mux.Handle(procedure, handler(procedure))
	}
	return mux
}

// A connectFrame is what an interceptor of the case gets.
type connectFrame struct {
	grpcFrame
	err error // with which the call ends
}

// outerConnect is an interceptor of the case.
type outerConnect func(frame)

func (outer outerConnect) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, m connect.AnyRequest) (reply connect.AnyResponse, err error) {
		f := &connectFrame{}
		f.grpcFrame = grpcFrame{ctx, func(ctx context.Context) {
			reply, err = next(ctx, m)
			f.err = err
		}}
		outer(f)
		return reply, err
	}
}

func (outerConnect) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (outer outerConnect) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		f := &connectFrame{}
		f.grpcFrame = grpcFrame{ctx, func(ctx context.Context) { f.err = next(ctx, conn) }}
		outer(f)
		return f.err
	}
}

// A connectCall is a call of any kind.
type connectCall struct{ grpcCall }

func (c *connectCall) Refuse(text string) {
	c.err = connect.NewError(connect.CodeAborted, errors.New(text))
}

// connectService answers calls of all kinds with the route's handler.
type connectService struct{ r route }

func (s connectService) unaryCall(ctx context.Context, m *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error) {
	c := &connectCall{grpcCall{ctx: ctx, body: m.Msg.GetResponseStatus().GetMessage()}}
	s.r.handler(c)
	return connect.NewResponse(&pb.SimpleResponse{Username: c.text}), c.err
}

func (s connectService) streamingOutputCall(
	ctx context.Context, m *connect.Request[pb.StreamingOutputCallRequest], pieces *connect.ServerStream[pb.StreamingOutputCallResponse],
) error {
	c := &connectCall{grpcCall{ctx: ctx, body: m.Msg.GetResponseStatus().GetMessage(), pieces: pieces}}
	s.r.handler(c)
	return c.err
}

// fullDuplexCall receives the one message itself.
func (s connectService) fullDuplexCall(
	ctx context.Context, pieces *connect.BidiStream[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse],
) error {
	m, err := pieces.Receive()
	if err != nil {
		return err
	}
	c := &connectCall{grpcCall{ctx: ctx, body: m.GetResponseStatus().GetMessage(), pieces: pieces}}
	s.r.handler(c)
	return c.err
}
