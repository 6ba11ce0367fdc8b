package annotatedtest

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/reqlock/reqlock/internal/annotatedpb"
)

// number is the number of the options.
const number = 50917

// A Service is an annotated copy of a service in a file of its own. Its messages are those of the
// original.
type Service struct {
	Of      protoreflect.ServiceDescriptor
	File    string            // the path of the file
	Package string            // of the copy
	Rules   string            // of the service; "": none
	Methods map[string]string // the rules of methods, by their names
	// NoSideEffects are the methods with this idempotency_level.
	NoSideEffects []string
	// WithoutImport leaves out the import of the annotations.
	WithoutImport bool
}

// Proto returns the descriptor of the file.
func (s Service) Proto(tb testing.TB) *descriptorpb.FileDescriptorProto {
	tb.Helper()
	service := protodesc.ToServiceDescriptorProto(s.Of)
	service.Options = &descriptorpb.ServiceOptions{}
	annotate(tb, service.Options, s.Rules, &annotatedpb.ServiceRules{})
	known := 0
	for _, method := range service.GetMethod() {
		method.Options = &descriptorpb.MethodOptions{}
		rules, ok := s.Methods[method.GetName()]
		if ok {
			known++
			annotate(tb, method.Options, rules, &annotatedpb.MethodRules{})
		}
		if slices.Contains(s.NoSideEffects, method.GetName()) {
			method.Options.IdempotencyLevel = descriptorpb.MethodOptions_NO_SIDE_EFFECTS.Enum()
		}
	}
	if known != len(s.Methods) {
		tb.Fatalf("%s has only %d of the methods %v", s.Of.FullName(), known, s.Methods)
	}
	imports := s.messageFiles()
	if !s.WithoutImport {
		imports = append(imports, "reqlock/v1/annotations.proto")
	}
	return &descriptorpb.FileDescriptorProto{
		Name: proto.String(s.File), Package: proto.String(s.Package), Syntax: proto.String("proto3"),
		Dependency: imports, Service: []*descriptorpb.ServiceDescriptorProto{service},
	}
}

// Descriptor returns the descriptor of the copy.
func (s Service) Descriptor(tb testing.TB) protoreflect.ServiceDescriptor {
	tb.Helper()
	file, err := protodesc.FileOptions{AllowUnresolvable: true}.New(s.Proto(tb), protoregistry.GlobalFiles)
	if err != nil {
		tb.Fatal(err)
	}
	return file.Services().Get(0)
}

// Register returns the descriptor of the copy, which the whole test binary knows from now on. So
// the file and the package need names that no other test uses.
func (s Service) Register(tb testing.TB) protoreflect.ServiceDescriptor {
	tb.Helper()
	d := s.Descriptor(tb)
	if err := protoregistry.GlobalFiles.RegisterFile(d.ParentFile()); err != nil {
		tb.Fatal(err)
	}
	return d
}

func (s Service) messageFiles() []string {
	var files []string
	for i := range s.Of.Methods().Len() {
		m := s.Of.Methods().Get(i)
		files = append(files, m.Input().ParentFile().Path(), m.Output().ParentFile().Path())
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// annotate sets an option, as the unknown field of a program without the annotations.
func annotate(tb testing.TB, options proto.Message, text string, rules proto.Message) {
	tb.Helper()
	if err := prototext.Unmarshal([]byte(text), rules); err != nil {
		tb.Fatalf("%q: %v", text, err)
	}
	if text == "" {
		if _, ofService := rules.(*annotatedpb.ServiceRules); ofService {
			return
		}
	}
	encoded, err := proto.Marshal(rules)
	if err != nil {
		tb.Fatal(err)
	}
	field := protowire.AppendTag(nil, number, protowire.BytesType)
	options.ProtoReflect().SetUnknown(protowire.AppendBytes(field, encoded))
}
