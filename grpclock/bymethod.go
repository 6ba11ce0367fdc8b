package grpclock

import (
	"fmt"
	"maps"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/reqlock/reqlock/core"
)

// ByMethod has a key function for each method that is to be locked. The methods
// that it does not list run without a lock, on purpose. They are named as gRPC
// does, "/pkg.Service/Method", for which generated code has constants:
//
//	grpclock.ByMethod(map[string]grpclock.KeyFunc{
//		pb.Bank_Transfer_FullMethodName: grpclock.Field[*pb.TransferRequest]("account.id"),
//	})
//
// Calls of unary methods pass only a UnaryServerInterceptor, and streams only a
// StreamServerInterceptor. The same KeyFunc serves both; a server whose map
// lists both kinds needs both.
//
// ByMethod panics if the map is empty or has a nil key function, and on a
// method that does not exist. At that time no server knows its services yet, so
// it looks among all protobuf services that are linked into the program
// (protoregistry.GlobalFiles). For a service that was made without protobuf,
// write a KeyFunc that looks at c.FullMethod, and returns core.ErrSkip for the
// other methods.
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
