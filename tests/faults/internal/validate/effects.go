package validate

import (
	"fmt"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// forgottenEffects finds what was done to the world and then forgotten: a request that
// took effect and was not aborted, and is run again by one who is not told of
// it. Its Number would be greater than 1.
func forgottenEffects(s *summary) (found []Violation) {
	forgotten := map[string]bool{} // leases that were found already
	for i := range s.Effects {
		effect := &s.Effects[i]
		l := s.byName[effect.Lease]
		if l == nil || !l.lock.attempt || l.lock.key != effect.Key {
			found = append(found, Violation{Check: checkEffects, Text: fmt.Sprintf(
				"client %d of process %d charged for %s at %d, and no attempt of its was to run", effect.Client, effect.Process, effect.Key, effect.At)})
			continue
		}
		if again := s.rerunAsFirst(l); again != nil && !forgotten[l.name] {
			forgotten[l.name] = true
			found = append(found, Violation{Check: checkEffects, Text: fmt.Sprintf(
				"%s took effect at %d, was not aborted, and %s ran as the first", callName(l.grant), effect.At, callName(again))})
		}
	}
	return found
}

// rerunAsFirst returns an attempt that ran as if another had not, if there is one.
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
