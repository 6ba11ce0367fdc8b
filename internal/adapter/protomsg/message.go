package protomsg

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// Reads tags a key that reads messages of the type M.
func Reads[M, R any](key core.Key[R]) core.Key[R] {
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

// Check returns an error if a key reads another message than a method receives.
func Check[R any](method protoreflect.MethodDescriptor, key core.Key[R]) error {
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
