package grpclock

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/annotated"
)

// lockKeys returns the key functions of the locks of a method.
func (r *Rules) lockKeys(m *annotated.Method) []KeyFunc {
	keys := make([]KeyFunc, len(m.Locks))
	for i, lock := range m.Locks {
		keys[i] = annotated.LockKey(lock, r.partsOf(m))
	}
	return keys
}

// partsOf returns the function that makes the key functions of the parts of a method's keys.
func (r *Rules) partsOf(m *annotated.Method) func(annotated.Part) KeyFunc {
	return func(part annotated.Part) KeyFunc {
		switch part.Kind {
		case annotated.Field:
			return fieldOf(m.Descriptor.Input(), part)
		case annotated.Metadata:
			if strings.EqualFold(part.Text, "idempotency-key") {
				return IdempotencyKey()
			}
			return Metadata(part.Text)
		case annotated.Source:
			return r.sources[part.Text]
		case annotated.Literal:
		}
		return Literal(part.Text)
	}
}

// fieldOf is Field for the message of a method.
func fieldOf(input protoreflect.MessageDescriptor, part annotated.Part) KeyFunc {
	return describedField(part.Text, func(c *Call) (string, error) {
		if c.probe != nil {
			return c.probe.answer()
		}
		return keyIn(c, input, part)
	})
}

// keyIn returns the key in the message of a call.
func keyIn(c *Call, input protoreflect.MessageDescriptor, part annotated.Part) (string, error) {
	m, err := messageOf[proto.Message](c)
	if err != nil {
		return "", err
	}
	message := m.ProtoReflect()
	if message.Descriptor() != input {
		return "", fmt.Errorf("the message of %s is a %s, not the %s of the program", c.method, message.Descriptor().FullName(), input.FullName())
	}
	return part.Path.Key(message)
}

// hasNoneOf returns the function that reports whether a call has none of the parts, which are
// fields and metadata of a method. Metadata with an empty value is there.
func hasNoneOf(parts []annotated.Part, m *annotated.Method) func(*Call) bool {
	input := m.Descriptor.Input()
	return func(c *Call) bool {
		return !slices.ContainsFunc(parts, func(part annotated.Part) bool {
			if part.Kind == annotated.Metadata {
				return hasMetadata(c, part.Text)
			}
			_, err := keyIn(c, input, part)
			return !errors.Is(err, core.ErrNoKey)
		})
	}
}

// checkSources returns the mistakes of sources that read another message than that of a method
// which names them.
func (r *Rules) checkSources() error {
	var faults []error
	check := func(m *annotated.Method, rule string, parts []annotated.Part) {
		for _, part := range parts {
			key := r.sources[part.Text]
			if part.Kind != annotated.Source || key == nil {
				continue
			}
			p := probeOf(m.Descriptor)
			p.inspect(key)
			faults = append(faults, m.Fault(fmt.Sprintf("%s: key: %v", rule, part), p.wrong))
		}
	}
	for _, m := range r.methods {
		for i, lock := range m.Locks {
			check(m, fmt.Sprintf("lock %d", i+1), lock.Key)
		}
		if m.Idempotent != nil {
			check(m, "idempotent", m.Idempotent.Key)
		}
	}
	return errors.Join(faults...)
}
