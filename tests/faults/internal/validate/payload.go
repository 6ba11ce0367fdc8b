package validate

import (
	"fmt"
	"slices"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// isSealed reports whether a Begin returned that the answer is not stored, for a request
// that a client has sealed.
func (s *summary) isSealed(op *history.Op) bool {
	return op.Outcome == history.Unreplayable && slices.ContainsFunc(s.calls[lockOf(op)], func(seal *history.Op) bool {
		return seal.Kind == history.Seal && seal.Call <= op.Return
	})
}

// wrongPayloads finds calls that were refused for another payload although they had the
// same, and calls that got the answer to another payload.
//
// If the record was lost, the other payload may have become the payload of the key.
func wrongPayloads(s *summary) (found []Violation) {
	for i := range s.Ops {
		switch op := &s.Ops[i]; {
		case op.Outcome == history.Mismatch && !op.Other && !s.mayHaveOtherPayload(op):
			found = append(found, Violation{Check: checkOutcomes, Text: callName(op) + ", was refused for another payload although it had the same"})
		case op.Other && (op.Outcome == history.Replayed || op.Outcome == history.Unreplayable) && !s.mayHaveOtherPayload(op):
			found = append(found, Violation{Check: checkOutcomes, Text: fmt.Sprintf("%s, with another payload, was %s", callName(op), op.Outcome)})
		}
	}
	return found
}

// mayHaveOtherPayload reports whether a Begin with another payload may have begun an
// attempt before a call returned.
func (s *summary) mayHaveOtherPayload(op *history.Op) bool {
	return slices.ContainsFunc(s.calls[lockOf(op)], func(other *history.Op) bool {
		return other != op && other.Other && other.Call <= op.Return && (other.Outcome == history.Granted || isIndeterminate(other))
	})
}
