package grpclock

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/protomsg"
	"github.com/reqlock/reqlock/internal/annotated"
	"github.com/reqlock/reqlock/internal/bridge"
)

// lockKey returns the key of all locks of a method.
func (r *Rules) lockKey(m *annotated.Method) Key {
	keys := make([]Key, len(m.Locks))
	for i, lock := range m.Locks {
		keys[i] = annotated.LockKey(lock, r.partsOf(m))
	}
	if len(keys) == 1 {
		return keys[0]
	}
	return core.All(keys...)
}

// partsOf returns the function that makes the keys of the parts of a method's keys.
func (r *Rules) partsOf(m *annotated.Method) func(annotated.Part) Key {
	return func(part annotated.Part) Key {
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
func fieldOf(input protoreflect.MessageDescriptor, part annotated.Part) Key {
	return describedField(part.Text, core.KeyOf(func(c *Call) (string, error) { return keyIn(c, input, part) }))
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

// checkSource returns the mistake of a source that a method names. alone says that it is the whole
// key of a lock.
func (r *Rules) checkSource(m *annotated.Method, key Key, alone bool) error {
	switch about := bridge.AboutOf(key); {
	case about.HasLimit && !alone:
		return errors.New("the source has Permits or Shared, which only the whole key of a lock may have")
	case about.Several:
		return errors.New("the source is several keys of core.All: declare several locks")
	}
	return protomsg.Check(m.Descriptor, key)
}

// checkSources returns the mistakes of the sources.
func (r *Rules) checkSources() error {
	var faults []error
	check := func(m *annotated.Method, rule string, parts []annotated.Part, alone bool) {
		for _, part := range parts {
			key, ok := r.sources[part.Text]
			if part.Kind != annotated.Source || !ok {
				continue
			}
			faults = append(faults, m.Fault(fmt.Sprintf("%s: key: %v", rule, part), r.checkSource(m, key, alone && len(parts) == 1)))
		}
	}
	for _, m := range r.methods {
		for i, lock := range m.Locks {
			check(m, fmt.Sprintf("lock %d", i+1), lock.Key, true)
		}
		if m.Idempotent != nil {
			check(m, "idempotent", m.Idempotent.Key, false)
		}
	}
	return errors.Join(faults...)
}
