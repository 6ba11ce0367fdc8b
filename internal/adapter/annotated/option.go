package annotated

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	_ "google.golang.org/protobuf/types/descriptorpb" // without it, descriptors have no options
)

const (
	methodOption  protoreflect.FullName = "reqlock.v1.method"
	serviceOption protoreflect.FullName = "reqlock.v1.service"

	// optionNumber is the number of both options.
	optionNumber protowire.Number = 50917
	// optionFile is the end of the path of the file that declares the options.
	optionFile = "reqlock/v1/annotations.proto"
)

// readOption reads an option of a method or a service into rules, and reports whether it is set.
func readOption(d protoreflect.Descriptor, name protoreflect.FullName, rules proto.Message) (found bool, err error) {
	encoded, found, err := encodedOption(d, name)
	if err != nil || !found {
		return found, err
	}
	if err := proto.Unmarshal(encoded, rules); err != nil {
		return true, fmt.Errorf("the option %s cannot be read: %w", name, err)
	}
	if field := newField(rules.ProtoReflect()); field != "" {
		return true, fmt.Errorf("this version of reqlock does not know %s: update reqlock", field)
	}
	return true, nil
}

// encodedOption returns the bytes of an option, and whether it is set. A program has the Go type
// of the option only if it imports the Go code of the annotations, or a copy of that code. All
// others, such as one that reads a compiled descriptor set, have an unknown field.
func encodedOption(d protoreflect.Descriptor, name protoreflect.FullName) (encoded []byte, found bool, err error) {
	options := d.Options().ProtoReflect()
	options.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if found = field.FullName() == name; found {
			encoded, err = proto.Marshal(value.Message().Interface())
		}
		return !found
	})
	if found || !importsOption(d.ParentFile()) {
		return encoded, found, err // without the import, the number is that of somebody else
	}
	for rest := options.GetUnknown(); len(rest) > 0; {
		number, kind, size := protowire.ConsumeField(rest)
		if size < 0 {
			return nil, true, fmt.Errorf("the option %s cannot be read: %w", name, protowire.ParseError(size))
		}
		if number == optionNumber && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(rest)
			piece, _ := protowire.ConsumeBytes(rest[tag:])
			encoded, found = append(encoded, piece...), true // several pieces are one message
		}
		rest = rest[size:]
	}
	return encoded, found, nil
}

// importsOption reports whether a file can set the options: it imports the file that declares
// them, itself or by a public import.
func importsOption(file protoreflect.FileDescriptor) bool {
	for i := range file.Imports().Len() {
		imported := file.Imports().Get(i)
		if strings.HasSuffix(imported.Path(), optionFile) || importsPublicly(imported) {
			return true
		}
	}
	return false
}

// importsPublicly reports whether files that import a file can set the options, too.
func importsPublicly(file protoreflect.FileDescriptor) bool {
	for i := range file.Imports().Len() {
		imported := file.Imports().Get(i)
		if imported.IsPublic && (strings.HasSuffix(imported.Path(), optionFile) || importsPublicly(imported)) {
			return true
		}
	}
	return false
}

// newField returns a field that this version does not know, or "". A rule with such a field
// demands something that would not happen.
func newField(m protoreflect.Message) (field string) {
	if unknown := m.GetUnknown(); len(unknown) > 0 {
		number, _, _ := protowire.ConsumeTag(unknown)
		return fmt.Sprintf("the field %d of %s", number, m.Descriptor().Name())
	}
	m.Range(func(d protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case d.IsList() && d.Message() != nil:
			for i := 0; i < value.List().Len() && field == ""; i++ {
				field = newField(value.List().Get(i).Message())
			}
		case d.Message() != nil:
			field = newField(value.Message())
		}
		return field == ""
	})
	return field
}
