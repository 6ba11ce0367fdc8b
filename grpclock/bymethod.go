package grpclock

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/protomsg"
	"github.com/reqlock/reqlock/internal/adapter/registration"
	"github.com/reqlock/reqlock/internal/bridge"
)

// ByMethod chooses the key by the method of the call. Methods that are not
// in keys run without a lock. Method names have the form of gRPC,
// "/pkg.Service/Method"; generated code has constants for them:
//
//	grpclock.ByMethod(map[string]grpclock.Key{
//		pb.Bank_Transfer_FullMethodName: grpclock.Field[*pb.TransferRequest]("account.id").Named("account"),
//	})
//
// The key of a method may be several keys: see core.All.
//
// Unary calls run only through a UnaryServerInterceptor, and streams only through a
// StreamServerInterceptor. ServerOptions makes both. If one of them is missing, its
// methods run without a lock. The observer receives a Warned event for each such method,
// but not before the first call of the other interceptor.
//
// ByMethod panics if the map is empty, or has a zero Key or an unknown method, and if a Field or
// Message reads another type than the method receives. Known are the methods of all protobuf
// services that are linked into the program (protoregistry.GlobalFiles), since no server has its
// services yet. For a service without protobuf, see core.Switch.
func ByMethod(keys map[string]Key) Key {
	registration.Must(self, len(keys) > 0, "ByMethod needs a method")
	methods := &protomsg.Methods{}
	for method, key := range keys {
		if isStream(method, key) {
			methods.Streams = append(methods.Streams, method)
		} else {
			methods.Unary = append(methods.Unary, method)
		}
	}
	slices.Sort(methods.Unary)
	slices.Sort(methods.Streams)
	return protomsg.ByMethod(core.Switch((*Call).FullMethod, keys), methods)
}

// isStream reports whether a method of a ByMethod is a stream. It panics if the key does not fit the
// method.
func isStream(method string, key Key) bool {
	descriptor := mustBeMethod(method)
	registration.Must(self, bridge.AboutOf(key) != nil, fmt.Sprintf("ByMethod: %q has the zero Key", method))
	if wrong := protomsg.Check(descriptor, key); wrong != nil {
		panic(fmt.Sprintf("reqlock: grpclock: ByMethod: %q: %v", method, wrong))
	}
	return descriptor.IsStreamingClient() || descriptor.IsStreamingServer()
}

// mustBeMethod returns the method, and panics unless the program has it.
func mustBeMethod(fullMethod string) protoreflect.MethodDescriptor {
	service, name, ok := strings.Cut(strings.TrimPrefix(fullMethod, "/"), "/")
	registration.Must(self, ok && strings.HasPrefix(fullMethod, "/"),
		fmt.Sprintf(`ByMethod: %q is not of the form "/pkg.Service/Method"`, fullMethod))
	found, _ := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	descriptor, ok := found.(protoreflect.ServiceDescriptor)
	registration.Must(self, ok, fmt.Sprintf("ByMethod: %q: this program has no service %q", fullMethod, service))
	method := descriptor.Methods().ByName(protoreflect.Name(name))
	registration.Must(self, method != nil, fmt.Sprintf("ByMethod: %q: the service %s has no method %q", fullMethod, service, name))
	return method
}
