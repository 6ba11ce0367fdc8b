package protomsg

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/internal/kind"
)

// Calls say how the keys of an adapter read its calls. The functions must be safe for concurrent use.
type Calls[R any] struct {
	// Method returns the full method of a call: "/pkg.Service/Method".
	Method func(R) string
	// Message returns the message of a call, and nil if there is none.
	Message func(R) any
}

// fingerprintVersion is the first part of the digested text. A new version changes
// all fingerprints, so copies of stored calls would be refused with MISMATCH.
const fingerprintVersion = 1

// Fingerprint digests the message of a call, for adapter.RPC: the name of its type, and its bytes with
// sorted maps. The error says that the message is no proto.Message, or cannot be encoded.
func (x Calls[R]) Fingerprint(r R) ([]byte, error) {
	message := x.Message(r)
	m, ok := message.(proto.Message)
	if !ok {
		return nil, kind.Mistake{Cause: fmt.Sprintf("the message of %s is a %T and no proto.Message", x.Method(r), message), Fix: "it needs WithFingerprint"}
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("the fingerprint of a message: %w: it needs WithFingerprint", err)
	}
	name := m.ProtoReflect().Descriptor().FullName()
	digest := sha256.New()
	fmt.Fprintf(digest, "%d:%d:%s", fingerprintVersion, len(name), name)
	digest.Write(b)
	return digest.Sum(nil), nil
}

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
