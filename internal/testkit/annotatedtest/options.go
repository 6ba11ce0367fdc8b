// Package annotatedtest makes descriptors of annotated services for tests, without protoc. The
// rules are written as in a .proto file.
package annotatedtest

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/reqlock/reqlock/internal/annotatedpb"
)

// Options returns the descriptor of a file that declares the options of methods and services. In
// the package "reqlock.v1" they are those of annotations.proto, and elsewhere other options with
// the same number.
func Options(file, pkg string) *descriptorpb.FileDescriptorProto {
	options := protodesc.ToFileDescriptorProto(annotatedpb.File_rules_proto)
	from, to := "."+options.GetPackage()+".", "."+pkg+"."
	for _, message := range options.GetMessageType() {
		for _, field := range message.GetField() {
			if name, ok := strings.CutPrefix(field.GetTypeName(), from); ok {
				field.TypeName = proto.String(to + name)
			}
		}
	}
	extension := func(name, of, message string) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{
			Name: proto.String(name), Number: proto.Int32(number), Extendee: proto.String(".google.protobuf." + of),
			Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), TypeName: proto.String(to + message),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
	}
	options.Name, options.Package = proto.String(file), proto.String(pkg)
	options.Dependency = append(options.Dependency, "google/protobuf/descriptor.proto")
	options.Extension = append(options.Extension,
		extension("method", "MethodOptions", "MethodRules"), extension("service", "ServiceOptions", "ServiceRules"))
	return options
}

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
