// Package fieldpath reads the key of a lock from a field of a protobuf message, by the path of
// the field. It knows descriptors and messages only, so the code and the annotations of a method
// have the same paths.
package fieldpath

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/keytext"
)

// A Path leads from a message to one of its fields, through the fields of nested messages.
type Path []protoreflect.FieldDescriptor

// Parse returns the path of names that dots separate, such as "account.id". The error says why
// the path leads to no key: a field does not exist, is repeated, a map or a oneof, or the last
// one has a type that is no key.
func Parse(message protoreflect.MessageDescriptor, path string) (Path, error) {
	var fields Path
	names := strings.Split(path, ".")
	for i, name := range names {
		field := message.Fields().ByName(protoreflect.Name(name))
		if fault := faultOf(message, name, field, i == len(names)-1); fault != "" {
			return nil, errors.New(fault)
		}
		fields = append(fields, field)
		message = field.Message()
	}
	return fields, nil
}

// Key returns the key in a message. A field that is not set, and an empty string, are
// core.ErrNoKey. The message must have the type that the path was parsed for.
func (p Path) Key(message protoreflect.Message) (string, error) {
	last := len(p) - 1
	for _, field := range p[:last] {
		message = message.Get(field).Message() // an empty message if the field is not set
	}
	if !message.Has(p[last]) {
		return "", core.ErrNoKey
	}
	return keytext.Value(message.Get(p[last]).Interface())
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
