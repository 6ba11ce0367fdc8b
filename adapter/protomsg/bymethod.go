package protomsg

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// Methods are the methods of a ByMethod: see MethodsOf. They are safe for concurrent use.
type Methods struct {
	Unary, Streams []string // full methods, "/pkg.Service/Method"

	unary, streams atomic.Bool // there is an interceptor for them
	tags           int         // how many tags before this one are those of its rows
}

// ByMethod chooses the key by the full method of a call: see grpclock.ByMethod. The error is that of
// an empty map, a zero Key, a method that the program does not have, or a key that reads another
// message than its method receives.
func ByMethod[R any](calls Calls[R], keys map[string]core.Key[R]) (core.Key[R], error) {
	if len(keys) == 0 {
		return core.Key[R]{}, errors.New("ByMethod needs a method")
	}
	methods := &Methods{}
	for method, key := range keys {
		stream, err := isStream(method, key)
		if err != nil {
			return core.Key[R]{}, fmt.Errorf("ByMethod: %q%w", method, err)
		}
		if stream {
			methods.Streams = append(methods.Streams, method)
		} else {
			methods.Unary = append(methods.Unary, method)
		}
	}
	slices.Sort(methods.Unary)
	slices.Sort(methods.Streams)
	key := core.Switch(calls.Method, keys)
	methods.tags = len(adapter.Tags(key))
	return adapter.Tag(key, methods), nil
}

// isStream reports whether a method of a ByMethod is a stream. The error says that the key does not
// fit the method. Its text follows that of the method.
func isStream[R any](method string, key core.Key[R]) (bool, error) {
	descriptor, err := methodOf(method)
	if err != nil {
		return false, err
	}
	if key.IsZero() {
		return false, errors.New(" has the zero Key")
	}
	if err := checkMessage(descriptor, key); err != nil {
		return false, fmt.Errorf(": %w", err)
	}
	return descriptor.IsStreamingClient() || descriptor.IsStreamingServer(), nil
}

// methodOf returns a method of the program.
func methodOf(fullMethod string) (protoreflect.MethodDescriptor, error) {
	service, name, ok := strings.Cut(strings.TrimPrefix(fullMethod, "/"), "/")
	if !ok || !strings.HasPrefix(fullMethod, "/") {
		return nil, errors.New(` is not of the form "/pkg.Service/Method"`)
	}
	found, _ := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	descriptor, ok := found.(protoreflect.ServiceDescriptor)
	if !ok {
		return nil, fmt.Errorf(": this program has no service %q", service)
	}
	method := descriptor.Methods().ByName(protoreflect.Name(name))
	if method == nil {
		return nil, fmt.Errorf(": the service %s has no method %q", service, name)
	}
	return method, nil
}

// All returns all methods.
func (m *Methods) All() []string { return slices.Concat(m.Unary, m.Streams) }

// NoteUnary notes that there is an interceptor for the unary methods.
func (m *Methods) NoteUnary() { m.unary.Store(true) }

// NoteStreams notes that there is an interceptor for the streams.
func (m *Methods) NoteStreams() { m.streams.Store(true) }

// HasUnary reports whether NoteUnary was called.
func (m *Methods) HasUnary() bool { return m.unary.Load() }

// HasStreams reports whether NoteStreams was called.
func (m *Methods) HasStreams() bool { return m.streams.Load() }

// MethodsOf returns the methods of each ByMethod of which a key is made.
func MethodsOf[R any](key core.Key[R]) (found []*Methods) {
	for _, tag := range adapter.Tags(key) {
		if m, ok := tag.(*Methods); ok && !slices.Contains(found, m) {
			found = append(found, m)
		}
	}
	return found
}
