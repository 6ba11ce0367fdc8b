package grpclock

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/registration"
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
// StreamServerInterceptor. ServerOptions makes both. If one of them is missing, its
// methods run without a lock. The observer receives a Warned event for each such method,
// but not before the first call of the other interceptor.
//
// ByMethod panics if the map is empty, or has a nil key function or an unknown
// method. Known are the methods of all protobuf services that are linked into the
// program (protoregistry.GlobalFiles), since no server has its services yet. For a
// service without protobuf, write a KeyFunc that checks c.FullMethod and returns
// core.ErrSkip for other methods.
//
// core.Func converts a function of your own that returns a string, for the map.
//
// ByMethod also panics if a Field or Message reads another type than the method
// receives. To find out, it calls each key function up to where the function first reads
// from its Call. What a function of your own does after that is not checked: there, such a
// mistake refuses each call with INTERNAL.
func ByMethod(keys map[string]KeyFunc) KeyFunc {
	registration.Must(self, len(keys) > 0, "ByMethod needs a method")
	m := &methods{keys: make(map[string]KeyFunc, len(keys))}
	for method, key := range keys {
		registration.Must(self, key != nil, fmt.Sprintf("ByMethod: the key function of %q is nil", method))
		m.add(method, key)
	}
	slices.Sort(m.unary)
	slices.Sort(m.streams)
	return m.key
}

// methods are the methods of a ByMethod.
type methods struct {
	keys           map[string]KeyFunc
	unary, streams []string
	// unaryLocked and streamsLocked say whether there is an interceptor for the unary
	// methods, and one for the streams.
	unaryLocked, streamsLocked atomic.Bool
}

// add adds a method. It panics if the key function does not fit the method.
func (m *methods) add(method string, key KeyFunc) {
	descriptor := mustBeMethod(method)
	p := probeOf(descriptor)
	p.inspect(key)
	if p.wrong != nil {
		panic(fmt.Sprintf("reqlock: grpclock: ByMethod: %q: %v", method, p.wrong))
	}
	m.keys[method] = key
	if descriptor.IsStreamingClient() || descriptor.IsStreamingServer() {
		m.streams = append(m.streams, method)
	} else {
		m.unary = append(m.unary, method)
	}
}

// all returns the full names of the methods.
func (m *methods) all() []string { return slices.Concat(m.unary, m.streams) }

// key is the key function.
func (m *methods) key(c *Call) (core.RequestKey, error) {
	if c.probe != nil {
		c.probe.byMethods = append(c.probe.byMethods, m)
		answer, err := c.probe.answer()
		return core.NewKey(answer), err
	}
	key, ok := m.keys[c.method]
	if !ok {
		return core.RequestKey{}, core.ErrSkip
	}
	return key(c)
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
