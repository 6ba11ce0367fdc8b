package protomsg

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/annotated"
	"github.com/reqlock/reqlock/internal/kind"
)

// key returns the key of one part of a rule.
func (r Rule[R]) key(part annotated.Part) core.Key[R] {
	switch part.Kind {
	case annotated.Field:
		return core.KeyOf(func(call R) (string, error) { return r.keyIn(call, part) }).
			Describe(adapter.Call("Field", part.Text), "the field "+strconv.Quote(part.Text))
	case annotated.Metadata:
		if strings.EqualFold(part.Text, "idempotency-key") {
			return r.parts.IdempotencyKey()
		}
		return r.parts.Metadata(part.Text)
	case annotated.Source:
		return r.parts.Sources[part.Text]
	case annotated.Literal:
	}
	return core.KeyOf(func(R) (string, error) { return part.Text, nil }).Describe(adapter.Call("Literal", part.Text), "")
}

// keyIn returns the key in the message of a call, whose Go type is not known at registration.
func (r Rule[R]) keyIn(call R, part annotated.Part) (string, error) {
	input := r.method.Descriptor.Input()
	message := r.parts.Message(call)
	switch m := message.(type) {
	case nil:
		return "", core.ErrNoKey
	case proto.Message:
		if message := m.ProtoReflect(); message.Descriptor() == input {
			return part.Path.Key(message)
		}
	}
	return "", kind.Mistake{Cause: fmt.Sprintf("the message of %s is a %T, not the %s of the program", r.parts.Method(call), message, input.FullName())}
}

// hasOneOf returns the function that reports whether a call has one of the parts, which are
// fields of its message and metadata. Metadata with an empty value is there.
func (r Rule[R]) hasOneOf(parts []annotated.Part) func(R) bool {
	return func(call R) bool {
		return slices.ContainsFunc(parts, func(part annotated.Part) bool {
			if part.Kind == annotated.Metadata {
				return len(r.parts.Header(call, part.Text)) > 0
			}
			_, err := r.keyIn(call, part)
			return !errors.Is(err, core.ErrNoKey)
		})
	}
}

// checkSources returns the mistakes of the sources that the rule names.
func (r Rule[R]) checkSources() (faults []error) {
	for i, lock := range r.method.Locks {
		faults = append(faults, r.checkParts(fmt.Sprintf("lock %d", i+1), lock.Key, len(lock.Key) == 1)...)
	}
	if r.method.Idempotent != nil {
		faults = append(faults, r.checkParts("idempotent", r.method.Idempotent.Key, false)...)
	}
	return faults
}

// checkParts returns the mistakes of the sources in a key. isWhole says that one part is the whole
// key of a lock.
func (r Rule[R]) checkParts(rule string, parts []annotated.Part, isWhole bool) (faults []error) {
	for _, part := range parts {
		key, ok := r.parts.Sources[part.Text]
		if part.Kind != annotated.Source || !ok {
			continue
		}
		err := annotated.CheckSource(key, isWhole)
		if err == nil {
			err = checkMessage(r.method.Descriptor, key)
		}
		faults = append(faults, r.method.Fault(fmt.Sprintf("%s: key: %v", rule, part), err))
	}
	return faults
}
