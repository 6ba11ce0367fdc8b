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
// others, such as a program that reads a compiled file, have an unknown field.
func encodedOption(d protoreflect.Descriptor, name protoreflect.FullName) (encoded []byte, found bool, err error) {
	options, imported := d.Options().ProtoReflect(), importsOption(d.ParentFile())
	options.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		isOption, hasNumber := field.FullName() == name, field.Number() == optionNumber
		switch {
		case isOption && hasNumber:
			encoded, err = proto.Marshal(value.Message().Interface())
		case isOption: // other programs, which do not have this type, would ignore the rules
			err = fmt.Errorf("the option %s has the number %d instead of %d: leave the number in %s as it is",
				name, field.Number(), optionNumber, optionFile)
		case hasNumber && imported: // protobuf has read the rules as another option, by the number
			err = fmt.Errorf("the program knows the number %d as the option %s: give that option another number",
				optionNumber, field.FullName())
		default:
			return true
		}
		found = true
		return false
	})
	if found {
		return encoded, true, err
	}
	return unknownOption(options.GetUnknown(), name, imported)
}

// unknownOption returns the bytes of an option among unknown fields. If the file does not import
// the option, the number may be that of another option. Ignoring it would drop the rules of a
// file that imports them in a way that is not known here, so it is an error.
func unknownOption(fields protoreflect.RawFields, name protoreflect.FullName, imported bool) (encoded []byte, found bool, err error) {
	for len(fields) > 0 {
		number, kind, size := protowire.ConsumeField(fields)
		switch {
		case size < 0:
			return nil, true, fmt.Errorf("the option %s cannot be read: %w", name, protowire.ParseError(size))
		case number != optionNumber:
		case !imported:
			return nil, true, fmt.Errorf("its option with the number %d is unknown, and the file does not import %s: "+
				"import the rules by this path, or link the Go code of the option", optionNumber, optionFile)
		case kind != protowire.BytesType:
			return nil, true, fmt.Errorf("the option %s cannot be read: it is no message", name)
		default:
			_, _, tag := protowire.ConsumeTag(fields)
			piece, _ := protowire.ConsumeBytes(fields[tag:])
			encoded, found = append(encoded, piece...), true // several pieces are one message
		}
		fields = fields[size:]
	}
	return encoded, found, nil
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

// optionFile is the path of the file that declares the options, or the end of this path: a copy
// may be in a folder of its own.
const optionFile = "reqlock/v1/annotations.proto"

// importsOption reports whether a file can set the options: it imports the file that declares
// them, itself or by a public import.
func importsOption(file protoreflect.FileDescriptor) bool {
	return declareOption(file.Imports()) || declareOption(optionImports(file))
}

// optionImports returns the files of "import option", which edition 2024 has. protoreflect has no
// method for them yet.
func optionImports(file protoreflect.FileDescriptor) protoreflect.FileImports {
	if file, ok := file.(interface {
		OptionImports() protoreflect.FileImports
	}); ok {
		return file.OptionImports()
	}
	return nil
}

// declareOption reports whether one of the imported files declares the options, or imports them
// publicly.
func declareOption(imports protoreflect.FileImports) bool {
	for i := 0; imports != nil && i < imports.Len(); i++ {
		if file := imports.Get(i); isOptionFile(file.Path()) || importsPublicly(file) {
			return true
		}
	}
	return false
}

// importsPublicly reports whether files that import a file can set the options, too.
func importsPublicly(file protoreflect.FileDescriptor) bool {
	for i := range file.Imports().Len() {
		imported := file.Imports().Get(i)
		if imported.IsPublic && (isOptionFile(imported.Path()) || importsPublicly(imported)) {
			return true
		}
	}
	return false
}

// isOptionFile reports whether a path is that of the file which declares the options.
func isOptionFile(path string) bool {
	return path == optionFile || strings.HasSuffix(path, "/"+optionFile)
}
