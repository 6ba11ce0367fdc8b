package annotated_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/reqlock/reqlock/internal/annotated"
	"github.com/reqlock/reqlock/internal/testkit/annotatedtest"
)

const rulesOfCall = `lock { name: "account" key { field: "response_status.message" } }`

// A method without the option declares nothing. One with it does, though this program does not
// have the Go code of the annotations.
func TestUnknownOptionIsReadAndNoOptionIsNone(t *testing.T) {
	t.Parallel()
	methods, err := read(t, service(map[string]string{"UnaryCall": rulesOfCall}))
	if err != nil {
		t.Fatal(err)
	}
	if m := methodOf(t, methods, "UnaryCall"); len(m.Locks) != 1 || m.Locks[0].Name != "account" || !m.IsDeclared() {
		t.Errorf("UnaryCall has %+v", m)
	}
	if m := methodOf(t, methods, "EmptyCall"); len(m.Locks) != 0 || m.IsDeclared() {
		t.Errorf("EmptyCall has %+v", m)
	}
}

// An edition 2024 file can import the options by "import option", which does not link their Go
// code.
func TestOptionOfOptionImportIsRead(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"reqlock/v1/annotations.proto", "third_party/reqlock/v1/annotations.proto"} {
		s := service(map[string]string{"UnaryCall": rulesOfCall})
		s.WithoutImport, s.Rules = true, `must_declare: true`
		file := s.Proto(t)
		file.Syntax, file.Edition = proto.String("editions"), descriptorpb.Edition_EDITION_2024.Enum()
		file.OptionDependency = []string{path}
		methods, err := readFile(t, file, protoregistry.GlobalFiles)
		if err == nil || !strings.Contains(err.Error(), "case.v1.TestService.EmptyCall: it declares nothing") {
			t.Errorf("%s: the option of the service is not read: %v", path, err)
		}
		if m := methodOf(t, methods, "UnaryCall"); len(m.Locks) != 1 {
			t.Errorf("%s: UnaryCall has %+v", path, m)
		}
	}
}

// An unknown option with the number of the rules may be the rules: a file can import them by
// another path. So it is not ignored.
func TestUnknownOptionWithoutImportIsRefused(t *testing.T) {
	t.Parallel()
	const why = ": its option with the number 50917 is unknown, and the file does not import reqlock/v1/annotations.proto: " +
		"import the rules by this path, or link the Go code of the option"
	for name, path := range map[string]string{
		"no import": "", "another import": "locks/annotations.proto", "another folder": "myreqlock/v1/annotations.proto",
	} {
		s := service(map[string]string{"UnaryCall": rulesOfCall})
		s.WithoutImport, s.Rules = true, `must_declare: true`
		file := s.Proto(t)
		if path != "" {
			file.Dependency = append(file.Dependency, path)
		}
		_, err := readFile(t, file, protoregistry.GlobalFiles)
		const at = "reqlock: case/v1/case.proto: case.v1.TestService"
		if want := at + why + "\n" + at + ".UnaryCall" + why; err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

// An option of that number is a message.
func TestOptionOfAnotherTypeIsRefused(t *testing.T) {
	t.Parallel()
	file := service(map[string]string{"UnaryCall": `unlocked: true`}).Proto(t)
	setRaw(t, file, protowire.AppendVarint(protowire.AppendTag(nil, 50917, protowire.VarintType), 1))
	_, err := readFile(t, file, protoregistry.GlobalFiles)
	if err == nil || !strings.HasSuffix(err.Error(), "case.v1.TestService.UnaryCall: the option reqlock.v1.method cannot be read: it is no message") {
		t.Errorf("got %v", err)
	}
}

// Another option may have the same number, if the program knows it, and the file does not import
// the rules. If it does, protobuf has read the rules as that option.
func TestKnownOptionOfAnotherNameIsNoRule(t *testing.T) {
	t.Parallel()
	option, rules := optionType(t, "audit.v1")
	for name, imported := range map[string]bool{"no import": false, "import": true} {
		s := service(map[string]string{"UnaryCall": ``})
		s.WithoutImport = !imported
		file := s.Proto(t)
		setKnown(t, file, option, dynamicpb.NewMessage(rules))
		methods, err := readFile(t, file, protoregistry.GlobalFiles)
		switch {
		case imported && (err == nil || !strings.HasSuffix(err.Error(), "case.v1.TestService.UnaryCall: "+
			"the program knows the number 50917 as the option audit.v1.method: give that option another number")):
			t.Errorf("%s: got %v", name, err)
		case !imported && (err != nil || methodOf(t, methods, "UnaryCall").IsDeclared()):
			t.Errorf("%s: got %v, UnaryCall has %+v", name, err, methodOf(t, methods, "UnaryCall"))
		}
	}
}

// A copy of annotations.proto with another number is refused where the option is known: a program
// without its Go code would ignore the rules.
func TestOptionOfAnotherNumberIsRefused(t *testing.T) {
	t.Parallel()
	copied := annotatedtest.Options("options.proto", "reqlock.v1")
	copied.Extension[0].Number = proto.Int32(51000)
	option, rules := optionTypeOf(t, copied)
	file := service(map[string]string{"UnaryCall": ``}).Proto(t)
	setKnown(t, file, option, dynamicpb.NewMessage(rules))
	_, err := readFile(t, file, protoregistry.GlobalFiles)
	if err == nil || !strings.HasSuffix(err.Error(), "case.v1.TestService.UnaryCall: the option reqlock.v1.method has the number "+
		"51000 instead of 50917: leave the number in reqlock/v1/annotations.proto as it is") {
		t.Errorf("got %v", err)
	}
}

// Protobuf may write a message in several pieces, and other options stand beside it.
func TestOptionInPiecesIsRead(t *testing.T) {
	t.Parallel()
	file := service(map[string]string{"UnaryCall": rulesOfCall}).Proto(t)
	pieceTwo := service(map[string]string{"UnaryCall": `lock { key { literal: "a" } }`}).Proto(t)
	other := protowire.AppendVarint(protowire.AppendTag(nil, 1999, protowire.VarintType), 7)
	one, two := optionsOf(t, file).GetUnknown(), optionsOf(t, pieceTwo).GetUnknown()
	setRaw(t, file, slices.Concat(other, one, other, two))
	methods, err := readFile(t, file, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	if m := methodOf(t, methods, "UnaryCall"); len(m.Locks) != 2 {
		t.Errorf("UnaryCall has %+v", m)
	}
}

// The file that declares the options may be imported by a public import of another file, and may
// have another folder.
func TestOptionOfPublicImportIsRead(t *testing.T) {
	t.Parallel()
	for name, isPublic := range map[string]bool{"public": true, "not public": false} {
		between := &descriptorpb.FileDescriptorProto{
			Name: proto.String("between.proto"), Syntax: proto.String("proto3"),
			Dependency: []string{"third_party/reqlock/v1/annotations.proto"},
		}
		if isPublic {
			between.PublicDependency = []int32{0}
		}
		known := &protoregistry.Files{}
		d, err := protodesc.FileOptions{AllowUnresolvable: true}.New(between, known)
		if err == nil {
			err = known.RegisterFile(d)
		}
		if err != nil {
			t.Fatal(err)
		}
		s := service(map[string]string{"UnaryCall": rulesOfCall})
		s.WithoutImport = true
		file := s.Proto(t)
		file.Dependency = append(file.Dependency, "between.proto")
		methods, err := readFile(t, file, both{known, protoregistry.GlobalFiles})
		if isPublic != (err == nil) {
			t.Fatalf("%s: got %v", name, err)
		}
		if m := methodOf(t, methods, "UnaryCall"); isPublic != (len(m.Locks) == 1) {
			t.Errorf("%s: UnaryCall has %+v", name, m)
		}
	}
}

// The option is also read if the program has its Go type, whatever package that type is in.
func TestKnownOptionIsRead(t *testing.T) {
	t.Parallel()
	option, rules := optionType(t, "reqlock.v1")
	message := dynamicpb.NewMessage(rules)
	locks := message.Mutable(rules.Fields().ByName("lock")).List()
	lock := locks.AppendMutable().Message()
	lock.Set(lock.Descriptor().Fields().ByName("name"), protoreflect.ValueOfString("account"))
	part := lock.Mutable(lock.Descriptor().Fields().ByName("key")).List().AppendMutable().Message()
	part.Set(part.Descriptor().Fields().ByName("literal"), protoreflect.ValueOfString("a"))

	s := service(map[string]string{"UnaryCall": ``})
	s.WithoutImport = true
	file := s.Proto(t)
	setKnown(t, file, option, message)
	methods, err := readFile(t, file, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	if m := methodOf(t, methods, "UnaryCall"); len(m.Locks) != 1 || m.Locks[0].Name != "account" || m.Locks[0].Key[0].Text != "a" {
		t.Errorf("UnaryCall has %+v", m)
	}
}

// optionsOf returns the options of the method UnaryCall of a file.
func optionsOf(t *testing.T, file *descriptorpb.FileDescriptorProto) protoreflect.Message {
	t.Helper()
	for _, method := range file.GetService()[0].GetMethod() {
		if method.GetName() == "UnaryCall" {
			return method.GetOptions().ProtoReflect()
		}
	}
	t.Fatal("there is no method UnaryCall")
	return nil
}

// setRaw sets the unknown options of UnaryCall.
func setRaw(t *testing.T, file *descriptorpb.FileDescriptorProto, raw []byte) {
	t.Helper()
	optionsOf(t, file).SetUnknown(raw)
}

// setKnown sets an option of UnaryCall whose type the program knows.
func setKnown(t *testing.T, file *descriptorpb.FileDescriptorProto, option protoreflect.ExtensionType, value proto.Message) {
	t.Helper()
	options := optionsOf(t, file)
	options.SetUnknown(nil)
	proto.SetExtension(options.Interface(), option, value)
}

// optionType returns the type of an option of methods with the number and the message of the
// rules, as the Go code of the package has it, and its message.
func optionType(t *testing.T, pkg string) (protoreflect.ExtensionType, protoreflect.MessageDescriptor) {
	t.Helper()
	return optionTypeOf(t, annotatedtest.Options("options.proto", pkg))
}

// optionTypeOf is optionType for the file that declares the option.
func optionTypeOf(t *testing.T, file *descriptorpb.FileDescriptorProto) (protoreflect.ExtensionType, protoreflect.MessageDescriptor) {
	t.Helper()
	d, err := protodesc.NewFile(file, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	return dynamicpb.NewExtensionType(d.Extensions().Get(0)), d.Messages().ByName("MethodRules")
}

// readFile reads the service of a file.
func readFile(t *testing.T, file *descriptorpb.FileDescriptorProto, known protodesc.Resolver) ([]*annotated.Method, error) {
	t.Helper()
	d, err := protodesc.FileOptions{AllowUnresolvable: true}.New(file, known)
	if err != nil {
		t.Fatal(err)
	}
	return annotated.Read([]protoreflect.ServiceDescriptor{d.Services().Get(0)}, annotated.Program{})
}

// both resolves names by two registries.
type both [2]protodesc.Resolver

func (b both) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if found, err := b[0].FindFileByPath(path); err == nil {
		return found, nil
	}
	return b[1].FindFileByPath(path)
}

func (b both) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if found, err := b[0].FindDescriptorByName(name); err == nil {
		return found, nil
	}
	return b[1].FindDescriptorByName(name)
}
