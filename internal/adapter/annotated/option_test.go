package annotated_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/reqlock/reqlock/internal/adapter/annotated"
	"github.com/reqlock/reqlock/internal/adapter/annotatedpb"
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

// Another option may have the same number in a file that does not import the annotations.
func TestNumberOfAnotherOptionIsIgnored(t *testing.T) {
	t.Parallel()
	s := service(map[string]string{"UnaryCall": rulesOfCall})
	s.WithoutImport = true
	methods, err := read(t, s)
	if err != nil {
		t.Fatal(err)
	}
	if m := methodOf(t, methods, "UnaryCall"); m.IsDeclared() {
		t.Errorf("UnaryCall has %+v", m)
	}
}

// Protobuf may write a message in several pieces, and other options stand beside it.
func TestOptionInPiecesIsRead(t *testing.T) {
	t.Parallel()
	file := service(map[string]string{"UnaryCall": rulesOfCall}).Proto(t)
	for _, method := range file.GetService()[0].GetMethod() {
		if method.GetName() == "UnaryCall" {
			other := protowire.AppendVarint(protowire.AppendTag(nil, 1999, protowire.VarintType), 7)
			raw := method.GetOptions().ProtoReflect().GetUnknown()
			method.GetOptions().ProtoReflect().SetUnknown(slices.Concat(other, raw, other, raw))
		}
	}
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
	for name, test := range map[string]struct {
		public bool
		want   int
	}{"public": {true, 1}, "not public": {false, 0}} {
		between := &descriptorpb.FileDescriptorProto{
			Name: proto.String("between.proto"), Syntax: proto.String("proto3"),
			Dependency: []string{"third_party/reqlock/v1/annotations.proto"},
		}
		if test.public {
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
		if err != nil {
			t.Fatal(err)
		}
		if m := methodOf(t, methods, "UnaryCall"); len(m.Locks) != test.want {
			t.Errorf("%s: UnaryCall has %+v", name, m)
		}
	}
}

// The option is also read if the program has its Go type, whatever package that type is in.
func TestKnownOptionIsRead(t *testing.T) {
	t.Parallel()
	option, rules := optionType(t)
	message := dynamicpb.NewMessage(rules)
	locks := message.Mutable(rules.Fields().ByName("lock")).List()
	lock := locks.AppendMutable().Message()
	lock.Set(lock.Descriptor().Fields().ByName("name"), protoreflect.ValueOfString("account"))
	part := lock.Mutable(lock.Descriptor().Fields().ByName("key")).List().AppendMutable().Message()
	part.Set(part.Descriptor().Fields().ByName("literal"), protoreflect.ValueOfString("a"))

	s := service(map[string]string{"UnaryCall": ``})
	s.WithoutImport = true
	file := s.Proto(t)
	for _, method := range file.GetService()[0].GetMethod() {
		if method.GetName() == "UnaryCall" {
			method.GetOptions().ProtoReflect().SetUnknown(nil)
			proto.SetExtension(method.GetOptions(), option, message)
		}
	}
	methods, err := readFile(t, file, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	if m := methodOf(t, methods, "UnaryCall"); len(m.Locks) != 1 || m.Locks[0].Name != "account" || m.Locks[0].Key[0].Text != "a" {
		t.Errorf("UnaryCall has %+v", m)
	}
}

// optionType returns the type of the option of methods, as the Go code of the annotations has it,
// and its message.
func optionType(t *testing.T) (protoreflect.ExtensionType, protoreflect.MessageDescriptor) {
	t.Helper()
	file := protodesc.ToFileDescriptorProto(annotatedpb.File_rules_proto)
	file.Name, file.Package = proto.String("reqlock/v1/annotations.proto"), proto.String("reqlock.v1")
	for _, message := range file.GetMessageType() {
		for _, field := range message.GetField() {
			if field.GetType() == descriptorpb.FieldDescriptorProto_TYPE_MESSAGE && field.GetTypeName() != ".google.protobuf.Duration" {
				field.TypeName = proto.String(".reqlock.v1" + field.GetTypeName()[len(".reqlock.internal.annotated"):])
			}
		}
	}
	file.Dependency = append(file.Dependency, "google/protobuf/descriptor.proto")
	file.Extension = []*descriptorpb.FieldDescriptorProto{{
		Name: proto.String("method"), Number: proto.Int32(50917), Extendee: proto.String(".google.protobuf.MethodOptions"),
		Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), TypeName: proto.String(".reqlock.v1.MethodRules"),
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
	}}
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
