package protomsg

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/reqlock/reqlock/adapter"
)

// Reply returns the message of a stored answer of a method, "/pkg.Service/Method". The program must
// have its type, and the method, if the program knows it, must return that type: another build may
// have stored the answer.
func Reply(fullMethod string, answer adapter.RPCAnswer) (proto.Message, error) {
	name := protoreflect.FullName(answer.Type)
	method := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(fullMethod, "/"), "/", "."))
	found, _ := protoregistry.GlobalFiles.FindDescriptorByName(method)
	if known, ok := found.(protoreflect.MethodDescriptor); ok && known.Output().FullName() != name {
		return nil, fmt.Errorf("reqlock: %s does not return a %s", fullMethod, name)
	}
	messageType, err := protoregistry.GlobalTypes.FindMessageByName(name)
	if err != nil {
		return nil, fmt.Errorf("reqlock: the message of an answer: %w", err)
	}
	message := messageType.New().Interface()
	if err := proto.Unmarshal(answer.Message, message); err != nil {
		return nil, fmt.Errorf("reqlock: the message of an answer: %w", err)
	}
	return message, nil
}
