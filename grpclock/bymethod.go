package grpclock

import (
	"fmt"
	"maps"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/reqlock/reqlock/core"
)

// ByMethod chooses the key function by the method of the call. Methods that are not
// in keys run without a lock. Method names have the form of gRPC,
// "/pkg.Service/Method"; generated code has constants for them:
//
//	grpclock.ByMethod(map[string]grpclock.KeyFunc{
//		pb.Bank_Transfer_FullMethodName: core.Named("account", grpclock.Field[*pb.TransferRequest]("account.id")),
//	})
//
// Unary calls run only through a UnaryServerInterceptor, and streams only through a
// StreamServerInterceptor. Both can use the same KeyFunc. If keys has unary methods
// and streams, the server needs both interceptors.
//
// ByMethod panics if the map is empty, or has a nil key function or an unknown
// method. Known are the methods of all protobuf services that are linked into the
// program (protoregistry.GlobalFiles), since no server has its services yet. For a
// service without protobuf, write a KeyFunc that checks c.FullMethod and returns
// core.ErrSkip for other methods.
func ByMethod(keys map[string]KeyFunc) KeyFunc {
	adapter.Must(len(keys) > 0, "ByMethod needs a method")
	for method, key := range keys {
		adapter.Must(key != nil, fmt.Sprintf("ByMethod: the key function of %q is nil", method))
		mustBeMethod(method)
	}
	keys = maps.Clone(keys)
	return func(c *Call) (string, error) {
		key, ok := keys[c.FullMethod()]
		if !ok {
			return "", core.ErrSkip
		}
		return key(c)
	}
}

// mustBeMethod panics unless the program has the method.
func mustBeMethod(fullMethod string) {
	service, method, ok := strings.Cut(strings.TrimPrefix(fullMethod, "/"), "/")
	adapter.Must(ok && strings.HasPrefix(fullMethod, "/"),
		fmt.Sprintf(`ByMethod: %q is not of the form "/pkg.Service/Method"`, fullMethod))
	found, _ := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	descriptor, ok := found.(protoreflect.ServiceDescriptor)
	adapter.Must(ok, fmt.Sprintf("ByMethod: %q: this program has no service %q", fullMethod, service))
	adapter.Must(descriptor.Methods().ByName(protoreflect.Name(method)) != nil,
		fmt.Sprintf("ByMethod: %q: the service %s has no method %q", fullMethod, service, method))
}
