package main

import (
	"errors"
	"fmt"
	"os"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// readServices returns the services in a compiled descriptor set, in the order of its files.
func readServices(file string) ([]protoreflect.ServiceDescriptor, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(text, set); err != nil {
		return nil, fmt.Errorf("%s is no descriptor set: %w", file, err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, fmt.Errorf("%s lacks something: compile it with --include_imports: %w", file, err)
	}
	// The set says which option has which number, so a second reading knows all options by name.
	options := proto.UnmarshalOptions{Resolver: dynamicpb.NewTypes(files)}
	if err := options.Unmarshal(text, set); err != nil {
		return nil, fmt.Errorf("%s has options that cannot be read: %w", file, err)
	}
	if files, err = protodesc.NewFiles(set); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var services []protoreflect.ServiceDescriptor
	for _, in := range set.GetFile() {
		d, err := files.FindFileByPath(in.GetName())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for i := range d.Services().Len() {
			services = append(services, d.Services().Get(i))
		}
	}
	if len(services) == 0 {
		return nil, errors.New(file + " has no service")
	}
	return services, nil
}
