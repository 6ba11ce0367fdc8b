package protolock

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/annotated"
)

// lockKey returns the key of all locks of a method.
func (r *Rules) lockKey(m *annotated.Method) grpclock.Key {
	keys := make([]grpclock.Key, len(m.Locks))
	for i, lock := range m.Locks {
		keys[i] = annotated.LockKey(lock, r.partsOf(m))
	}
	if len(keys) == 1 {
		return keys[0]
	}
	return core.All(keys...)
}

// idempotencyKey returns the key of an idempotent method.
func (r *Rules) idempotencyKey(m *annotated.Method) grpclock.Key {
	key := annotated.IdempotencyKey(m.Idempotent, r.partsOf(m))
	if m.Idempotent.Optional {
		return key.When(hasOneOf(m.Idempotent.ClientParts(), m.Descriptor.Input()))
	}
	return key
}

// partsOf returns the function that makes the keys of the parts of a method's keys.
func (r *Rules) partsOf(m *annotated.Method) func(annotated.Part) grpclock.Key {
	return func(part annotated.Part) grpclock.Key {
		switch part.Kind {
		case annotated.Field:
			return fieldOf(m.Descriptor.Input(), part)
		case annotated.Metadata:
			if strings.EqualFold(part.Text, "idempotency-key") {
				return grpclock.IdempotencyKey()
			}
			return grpclock.Metadata(part.Text)
		case annotated.Source:
			return r.sources[part.Text]
		case annotated.Literal:
		}
		return grpclock.Literal(part.Text)
	}
}

// fieldOf is grpclock.Field for the message of a method, whose Go type is not known here.
func fieldOf(input protoreflect.MessageDescriptor, part annotated.Part) grpclock.Key {
	path := strconv.Quote(part.Text)
	return core.KeyOf(func(c *grpclock.Call) (string, error) { return keyIn(c, input, part) }).
		Describe("Field("+path+")", "the field "+path)
}

// keyIn returns the key in the message of a call.
func keyIn(c *grpclock.Call, input protoreflect.MessageDescriptor, part annotated.Part) (string, error) {
	switch m := c.Message().(type) {
	case nil:
		return "", core.ErrNoKey
	case proto.Message:
		if message := m.ProtoReflect(); message.Descriptor() == input {
			return part.Path.Key(message)
		}
	}
	return "", fmt.Errorf("the message of %s is a %T, not the %s of the program", c.FullMethod(), c.Message(), input.FullName())
}

// hasOneOf returns the function that reports whether a call has one of the parts, which are
// fields of its message and metadata. Metadata with an empty value is there.
func hasOneOf(parts []annotated.Part, input protoreflect.MessageDescriptor) func(*grpclock.Call) bool {
	return func(c *grpclock.Call) bool {
		return slices.ContainsFunc(parts, func(part annotated.Part) bool {
			if part.Kind == annotated.Metadata {
				return len(metadata.ValueFromIncomingContext(c.Context(), part.Text)) > 0
			}
			_, err := keyIn(c, input, part)
			return !errors.Is(err, core.ErrNoKey)
		})
	}
}
