package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/annotatedtest"
	"github.com/reqlock/reqlock/protolock"
)

func overAnnotatedUnary() *framework {
	return overAnnotations("annotated unary", overGRPCUnary(), unaryCall)
}

func overAnnotatedBidi() *framework {
	return overAnnotations("annotated bidi", overGRPCBidi(), bidiStream)
}

// overAnnotations is a column of gRPC in which the innermost lock of a route is declared in a
// .proto file. All other locks stay in code. Each route has a copy of the service.
func overAnnotations(name string, of *framework, kind callKind) *framework {
	f := *of
	f.name = name
	f.serve = func(t *testing.T, locks *core.Locker, r route) server {
		declared, sources := annotate(t, r)
		desc := annotatedtest.Desc(pb.TestService_ServiceDesc, declared)
		rules := protolock.Must(protolock.New([]*grpc.ServiceDesc{desc}, sources...))
		var options []core.Option
		if n := len(r.locks); n > 0 {
			inner := r.locks[n-1]
			inner.keys = inner.keys[:1] // the others are declared, too
			options = ofGRPC.options(inner)
			r.locks = r.locks[:n-1]
		}
		unary := append(byOriginalUnary(unaryChain(locks, r)), rules.UnaryServerInterceptor(locks, options...))
		stream := append(byOriginalStream(streamChain(locks, r)), rules.StreamServerInterceptor(locks, options...))
		s := listenServices(t, kind, func(s *grpc.Server) { s.RegisterService(desc, grpcService{r: r}) },
			grpc.ChainUnaryInterceptor(unary...), grpc.ChainStreamInterceptor(stream...))
		s.TestServiceClient = pb.NewTestServiceClient(annotatedtest.Conn(s.conn, pb.TestService_ServiceDesc, declared))
		return s
	}
	return &f
}

// copies counts the copies of the service, which need different names.
var copies atomic.Int64

// annotate returns a copy of the service with the innermost lock of a route in its annotations,
// and the keys that the annotations name.
func annotate(t *testing.T, r route) (protoreflect.ServiceDescriptor, []protolock.Option) {
	t.Helper()
	n := copies.Add(1)
	s := annotatedtest.Service{
		Of:   pb.File_grpc_testing_test_proto.Services().ByName("TestService"),
		File: fmt.Sprintf("route%d/route.proto", n), Package: fmt.Sprintf("route%d", n),
	}
	var rules strings.Builder
	var sources []protolock.Option
	if len(r.locks) > 0 {
		for i, k := range r.locks[len(r.locks)-1].keys {
			source := fmt.Sprintf("source%d", i)
			rules.WriteString(ruleOf(k, source))
			sources = append(sources, protolock.Source(source, sourceOf(k)))
		}
		s.Methods = map[string]string{}
		for _, method := range []string{"UnaryCall", "StreamingOutputCall", "FullDuplexCall"} {
			s.Methods[method] = rules.String()
		}
	}
	return s.Register(t), sources
}

// ruleOf returns the rule of a key. A key that an annotation cannot write has the source.
func ruleOf(k key, source string) string {
	parts := fmt.Sprintf("key { metadata: %q }", k.header)
	switch {
	case k.from != nil, k.limit == readers:
		parts = fmt.Sprintf("key { source: %q }", source)
	case k.body:
		parts = `key { field: "response_status.message" }`
	case k.user:
		parts = `key { metadata: "x-second" } key { metadata: "idempotency-key" }`
	}
	limits := map[limit]string{threePermits: "permits: 3", shared: "shared: true"}
	return fmt.Sprintf("lock { name: %q %s %s }\n", k.named, parts, limits[k.limit])
}

// sourceOf returns the key of a route without its name, which the rule has.
func sourceOf(k key) grpclock.Key {
	k.named = ""
	return ofGRPC.key(k)
}

// original is the name of a method of a copy in the original service.
func original(fullMethod string) string {
	return "/" + pb.TestService_ServiceDesc.ServiceName + fullMethod[strings.LastIndexByte(fullMethod, '/'):]
}

// byOriginalUnary and byOriginalStream return interceptors that get the names of methods in the
// original service, as the keys of other columns do.
func byOriginalUnary(chain []grpc.UnaryServerInterceptor) (renamed []grpc.UnaryServerInterceptor) {
	for _, interceptor := range chain {
		renamed = append(renamed, func(ctx context.Context, m any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			return interceptor(ctx, m, &grpc.UnaryServerInfo{Server: info.Server, FullMethod: original(info.FullMethod)}, next)
		})
	}
	return renamed
}

func byOriginalStream(chain []grpc.StreamServerInterceptor) (renamed []grpc.StreamServerInterceptor) {
	for _, interceptor := range chain {
		renamed = append(renamed, func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			of := *info
			of.FullMethod = original(info.FullMethod)
			return interceptor(srv, s, &of, next)
		})
	}
	return renamed
}
