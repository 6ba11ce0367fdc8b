package grpclock

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/keypart"
)

// Field reads the key from a field of the message of a call. The path consists of
// names from the .proto file; dots separate nested fields:
//
//	grpclock.Field[*pb.TransferRequest]("account.id")
//
// The last field is a string, an integer or an enum; the key of an enum is its
// number. A field that is not set is core.ErrNoKey, and so is an empty string. Zero
// is core.ErrNoKey too, unless the field has presence, as optional fields and fields
// of a oneof have. A message of another type refuses the call with INTERNAL, as in
// Message: ByMethod finds this mistake at registration.
//
// Field resolves the path when it is called. It panics, and names the path, in these
// cases: M has no such field; the last field is a bool, a floating-point number,
// bytes or a message, which cannot be keys; a field in the path is repeated or a map;
// or the path names a oneof instead of one of its fields.
func Field[M proto.Message](path string) KeyFunc {
	fields := lookUp(descriptorOf[M](path), path)
	last := len(fields) - 1
	return core.Describe(keypart.Call("Field", path), "the field "+strconv.Quote(path), func(c *Call) (string, error) {
		if c.probe != nil {
			return reads[M](c.probe)
		}
		m, err := messageOf[M](c)
		if err != nil {
			return "", err
		}
		message := m.ProtoReflect()
		for _, field := range fields[:last] {
			message = message.Get(field).Message() // an empty message if the field is not set
		}
		if !message.Has(fields[last]) {
			return "", core.ErrNoKey
		}
		return keypart.Value(message.Get(fields[last]).Interface())
	})
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

// faultOf returns why a field of a message cannot be part of a path, or "". field is
// nil if the message has no field with the name.
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

// isKey reports whether values of a kind can be keys: they have exactly one text
// form.
func isKey(kind protoreflect.Kind) bool {
	switch kind {
	case protoreflect.BoolKind, protoreflect.FloatKind, protoreflect.DoubleKind, protoreflect.BytesKind,
		protoreflect.MessageKind, protoreflect.GroupKind:
		return false
	default:
		return true
	}
}
