package annotatedtest

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Desc returns a gRPC service under the name of its annotated copy.
func Desc(of grpc.ServiceDesc, annotated protoreflect.ServiceDescriptor) *grpc.ServiceDesc {
	name := string(annotated.FullName())
	methods := make([]grpc.MethodDesc, len(of.Methods))
	for i, method := range of.Methods {
		full := "/" + name + "/" + method.MethodName
		methods[i] = grpc.MethodDesc{MethodName: method.MethodName, Handler: func(
			srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor,
		) (any, error) {
			if interceptor == nil {
				return method.Handler(srv, ctx, decode, nil)
			}
			renamed := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				return interceptor(ctx, req, &grpc.UnaryServerInfo{Server: info.Server, FullMethod: full}, next)
			}
			return method.Handler(srv, ctx, decode, renamed)
		}}
	}
	of.ServiceName, of.Methods = name, methods
	return &of
}

// Conn returns a connection on which the generated client of a service calls its annotated copy.
func Conn(conn grpc.ClientConnInterface, of grpc.ServiceDesc, annotated protoreflect.ServiceDescriptor) grpc.ClientConnInterface {
	return renamedConn{conn, "/" + of.ServiceName + "/", "/" + string(annotated.FullName()) + "/"}
}

type renamedConn struct {
	grpc.ClientConnInterface
	from, to string
}

// Invoke calls the method of the copy.
func (c renamedConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return c.ClientConnInterface.Invoke(ctx, strings.Replace(method, c.from, c.to, 1), args, reply, opts...)
}

// NewStream opens the stream of the copy.
func (c renamedConn) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return c.ClientConnInterface.NewStream(ctx, desc, strings.Replace(method, c.from, c.to, 1), opts...)
}
