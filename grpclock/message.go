package grpclock

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/registration"
	"github.com/reqlock/reqlock/internal/keytext"
)

// Message reads the key from the message of a call, with the function get. With
// generated getters the compiler checks the types:
//
//	grpclock.Message((*pb.TransferRequest).GetAccountId)
//	grpclock.Message(func(m *pb.TransferRequest) string { return m.GetAccount().GetId() })
//
// M may be an interface, for the messages of several methods. An empty key is
// core.ErrNoKey. A message of another type refuses the call with INTERNAL, since the
// key does not fit the method: see ByMethod. A nil get panics.
func Message[M any](get func(M) string) Key {
	registration.Must(self, get != nil, "Message needs a function")
	key := core.KeyOf(func(c *Call) (string, error) {
		m, err := messageOf[M](c)
		if err != nil {
			return "", err
		}
		return keytext.Text(get(m))
	}).Describe(fmt.Sprintf("Message(func(%v) string)", reflect.TypeFor[M]()), "")
	return adapter.Tag(key, readsMessage{reflect.TypeFor[M](), fits[M]})
}

// readsMessage is the tag of a key that reads the message of a call.
type readsMessage struct {
	message reflect.Type
	fits    func(protoreflect.MessageDescriptor) bool // whether it may be the type of such messages
}

// fits reports whether messages may be of type M.
func fits[M any](input protoreflect.MessageDescriptor) bool {
	var m M
	if reflect.TypeFor[M]().Kind() == reflect.Interface {
		linked, err := protoregistry.GlobalTypes.FindMessageByName(input.FullName())
		if err != nil {
			return true // the type is not known
		}
		_, ok := linked.Zero().Interface().(M)
		return ok
	}
	generated, ok := any(m).(proto.Message)
	return !ok || generated.ProtoReflect().Descriptor().FullName() == input.FullName()
}

// checkMessage returns an error if a key reads another message than a method receives.
func checkMessage(method protoreflect.MethodDescriptor, key Key) error {
	tags := adapter.Tags(key)
	for i := len(tags) - 1; i >= 0; i-- {
		switch tag := tags[i].(type) {
		case *methods:
			i -= tag.tags // ByMethod has checked its rows
		case readsMessage:
			if !tag.fits(method.Input()) {
				return fmt.Errorf("its key reads a %v, and the message of the method is a %s", tag.message, method.Input().FullName())
			}
		}
	}
	return nil
}

// messageOf returns the message of a call, which must be an M.
func messageOf[M any](c *Call) (M, error) {
	message := c.Message()
	m, ok := message.(M)
	switch {
	case ok:
		return m, nil
	case message == nil:
		return m, core.ErrNoKey
	default:
		return m, fmt.Errorf("the message of %s is a %T, not a %v: choose the methods by ByMethod", c.FullMethod(), message, reflect.TypeFor[M]())
	}
}
