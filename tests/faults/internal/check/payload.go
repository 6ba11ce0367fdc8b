package check

import (
	"fmt"
	"slices"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// sealed reports whether a Begin was told that the answer is not kept, of a request
// that somebody has sealed.
func (s *story) sealed(op *history.Op) bool {
	return op.Outcome == history.Unreplayable && slices.ContainsFunc(s.calls[lockOf(op)], func(seal *history.Op) bool {
		return seal.Kind == history.Seal && seal.Call <= op.Return
	})
}

// payloads finds who was refused for another payload than that of the request, and
// had the same; and who got the answer to another one.
//
// Where the request was lost, the other payload may have become that of the key.
func payloads(s *story) (found []Finding) {
	for i := range s.Ops {
		switch op := &s.Ops[i]; {
		case op.Outcome == history.Mismatch && !op.Other && !s.usurped(op):
			found = append(found, Finding{Check: "errors", Text: name(op) + ", was refused for another payload, and had the same"})
		case op.Other && (op.Outcome == history.Replayed || op.Outcome == history.Unreplayable) && !s.usurped(op):
			found = append(found, Finding{Check: "errors", Text: fmt.Sprintf("%s, with another payload, was %s", name(op), op.Outcome)})
		}
	}
	return found
}

// usurped reports whether a Begin with another payload may have run, or may have been
// about to, before a call returned.
func (s *story) usurped(op *history.Op) bool {
	return slices.ContainsFunc(s.calls[lockOf(op)], func(other *history.Op) bool {
		return other != op && other.Other && other.Call <= op.Return && (other.Outcome == history.Granted || unheard(other))
	})
}
