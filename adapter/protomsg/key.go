package protomsg

import (
	"fmt"
	"reflect"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/fieldpath"
	"github.com/reqlock/reqlock/internal/kind"
)

// Field returns the key of a field of the messages of the type M, which is a generated one. Dots in the
// path separate the names of nested fields: see grpclock.Field, which describes the values. The error
// says why the path leads to no key.
func Field[M proto.Message, R any](calls Calls[R], path string) (core.Key[R], error) {
	input, err := descriptorOf[M]()
	if err != nil {
		return core.Key[R]{}, err
	}
	fields, err := fieldpath.Parse(input, path)
	if err != nil {
		return core.Key[R]{}, err
	}
	key := core.KeyOf(func(r R) (string, error) {
		m, err := messageOf[M](calls, r)
		if err != nil {
			return "", err
		}
		return fields.Key(m.ProtoReflect())
	}).Describe(adapter.Call("Field", path), "the field "+strconv.Quote(path))
	return reads[M](key), nil
}

// Message returns the key that get reads from messages of the type M, which may be an interface.
func Message[M, R any](calls Calls[R], get func(M) string) core.Key[R] {
	return reads[M](core.KeyOf(func(r R) (string, error) {
		m, err := messageOf[M](calls, r)
		if err != nil {
			return "", err
		}
		return adapter.Text(get(m))
	}).Describe(fmt.Sprintf("Message(func(%v) string)", reflect.TypeFor[M]()), ""))
}

// messageOf returns the message of a call, which must be an M.
func messageOf[M, R any](calls Calls[R], r R) (M, error) {
	message := calls.Message(r)
	m, ok := message.(M)
	switch {
	case ok:
		return m, nil
	case message == nil:
		return m, core.ErrNoKey
	default:
		return m, kind.Mistake{
			Cause: fmt.Sprintf("the message of %s is a %T, not a %v", calls.Method(r), message, reflect.TypeFor[M]()),
			Fix:   "choose the methods by ByMethod",
		}
	}
}

// descriptorOf returns the descriptor of a generated message type.
func descriptorOf[M proto.Message]() (d protoreflect.MessageDescriptor, err error) {
	var m M
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%T is not a generated message type", m)
		}
	}()
	return m.ProtoReflect().Descriptor(), nil
}

// reads tags a key that reads messages of the type M.
func reads[M, R any](key core.Key[R]) core.Key[R] {
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
func checkMessage[R any](method protoreflect.MethodDescriptor, key core.Key[R]) error {
	tags := adapter.Tags(key)
	for i := len(tags) - 1; i >= 0; i-- {
		switch tag := tags[i].(type) {
		case *Methods:
			i -= tag.tags // ByMethod has checked its rows
		case readsMessage:
			if !tag.fits(method.Input()) {
				return fmt.Errorf("its key reads a %v, and the message of the method is a %s", tag.message, method.Input().FullName())
			}
		}
	}
	return nil
}
