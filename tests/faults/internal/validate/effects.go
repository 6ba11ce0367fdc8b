package validate

import (
	"fmt"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// forgottenEffects finds requests that took effect, were not aborted, and run again as if
// they had not. The Number of a later attempt must be greater than 1.
func forgottenEffects(s *summary) (found []Violation) {
	forgotten := map[string]bool{} // leases that were reported already
	for i := range s.Effects {
		effect := &s.Effects[i]
		l := s.byName[effect.Lease]
		if l == nil || !l.lock.attempt || l.lock.key != effect.Key {
			found = append(found, Violation{Check: checkEffects, Text: fmt.Sprintf(
				"client %d of process %d charged for %s at %d without an attempt that must run", effect.Client, effect.Process, effect.Key, effect.At)})
			continue
		}
		if again := s.rerunAsFirst(l); again != nil && !forgotten[l.name] {
			forgotten[l.name] = true
			found = append(found, Violation{Check: checkEffects, Text: fmt.Sprintf(
				"%s took effect at %d and was not aborted, and %s ran as the first attempt", callName(l.grant), effect.At, callName(again))})
		}
	}
	return found
}

// rerunAsFirst returns a later attempt with the number 1, or nil.
func (s *summary) rerunAsFirst(l *lease) *history.Op {
	if l.end != nil && l.end.Kind == history.Abort {
		return nil
	}
	for _, later := range s.leases[l.lock] {
		if later.grant.Call > l.grant.Return && later.grant.Return < l.lossFrom && later.grant.Number == 1 {
			return later.grant
		}
	}
	return nil
}
