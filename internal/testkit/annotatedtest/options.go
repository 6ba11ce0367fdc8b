package annotatedtest

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/reqlock/reqlock/internal/adapter/annotatedpb"
)

// Options returns the descriptor of a file that declares the options of methods and services. In
// the package "reqlock.v1" they are those of annotations.proto, and elsewhere other options with
// the same number.
func Options(file, pkg string) *descriptorpb.FileDescriptorProto {
	options := protodesc.ToFileDescriptorProto(annotatedpb.File_rules_proto)
	from, to := "."+options.GetPackage()+".", "."+pkg+"."
	for _, message := range options.GetMessageType() {
		for _, field := range message.GetField() {
			if name, ok := strings.CutPrefix(field.GetTypeName(), from); ok {
				field.TypeName = proto.String(to + name)
			}
		}
	}
	extension := func(name, of, message string) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{
			Name: proto.String(name), Number: proto.Int32(number), Extendee: proto.String(".google.protobuf." + of),
			Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), TypeName: proto.String(to + message),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
	}
	options.Name, options.Package = proto.String(file), proto.String(pkg)
	options.Dependency = append(options.Dependency, "google/protobuf/descriptor.proto")
	options.Extension = append(options.Extension,
		extension("method", "MethodOptions", "MethodRules"), extension("service", "ServiceOptions", "ServiceRules"))
	return options
}
