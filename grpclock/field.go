package grpclock

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/keypart"
)

// Field reads the key from a field of the message of a call. The path holds
// the names of the .proto file; dots lead into messages:
//
//	grpclock.Field[*pb.TransferRequest]("account.id")
//
// The last field is a string, an integer or an enum, whose key is its number.
// A field that is not set is core.ErrNoKey, and so is an empty string; and so
// is zero, unless the field tells it from nothing, as those marked optional and
// those in a oneof do. A message of another type refuses the call with
// INTERNAL, as in Message.
//
// The path is looked up when Field is called. It panics, and names the path, if
// M has no such field; if the last one is a bool, a floating-point number,
// bytes or a message, which are no keys; if one on the way is repeated or a
// map; or if the path names a oneof, which may be any of its fields.
func Field[M proto.Message](path string) KeyFunc {
	fields := lookUp(descriptorOf[M](path), path)
	last := len(fields) - 1
	return func(c *Call) (string, error) {
		m, err := messageOf[M](c)
		if err != nil {
			return "", err
		}
		message := m.ProtoReflect()
		for _, field := range fields[:last] {
			message = message.Get(field).Message() // empty where it is not set
		}
		if !message.Has(fields[last]) {
			return "", core.ErrNoKey
		}
		return keypart.Value(message.Get(fields[last]).Interface())
	}
}

// descriptorOf returns the descriptor of a generated message type.
func descriptorOf[M proto.Message](path string) (d protoreflect.MessageDescriptor) {
	var m M
	defer func() {
		if recover() != nil {
			panic(fmt.Sprintf("reqlock: grpclock: Field(%q): %T is not a generated message type", path, m))
		}
	}()
	return m.ProtoReflect().Descriptor()
}

// lookUp returns the fields of a path, or panics.
func lookUp(message protoreflect.MessageDescriptor, path string) []protoreflect.FieldDescriptor {
	var fields []protoreflect.FieldDescriptor
	names := strings.Split(path, ".")
	for i, name := range names {
		field := message.Fields().ByName(protoreflect.Name(name))
		if fault := faultOf(message, name, field, i == len(names)-1); fault != "" {
			panic(fmt.Sprintf("reqlock: grpclock: Field(%q): %s", path, fault))
		}
		fields = append(fields, field)
		message = field.Message()
	}
	return fields
}

// faultOf returns why a field of a message, nil if it has none of the name,
// cannot stand in a path; or "".
func faultOf(message protoreflect.MessageDescriptor, name string, field protoreflect.FieldDescriptor, last bool) string {
	switch {
	case message.Oneofs().ByName(protoreflect.Name(name)) != nil:
		return fmt.Sprintf("%q is a oneof of %s; name one of its fields", name, message.FullName())
	case field == nil:
		return fmt.Sprintf("%s has no field %q", message.FullName(), name)
	case field.IsMap():
		return fmt.Sprintf("%q of %s is a map", name, message.FullName())
	case field.IsList():
		return fmt.Sprintf("%q of %s is repeated", name, message.FullName())
	case last && !isKey(field.Kind()):
		return fmt.Sprintf("%q of %s is a %v, which is no key", name, message.FullName(), field.Kind())
	case !last && field.Message() == nil:
		return fmt.Sprintf("%q of %s is a %v, which has no fields", name, message.FullName(), field.Kind())
	}
	return ""
}

// isKey reports whether values of a kind are keys: those that have one form.
func isKey(kind protoreflect.Kind) bool {
	switch kind {
	case protoreflect.BoolKind, protoreflect.FloatKind, protoreflect.DoubleKind, protoreflect.BytesKind,
		protoreflect.MessageKind, protoreflect.GroupKind:
		return false
	default:
		return true
	}
}
