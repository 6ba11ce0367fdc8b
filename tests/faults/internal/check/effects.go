package check

import (
	"fmt"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// effects finds what was done to the world and then forgotten: a request that
// took effect and was not aborted, and is run again by one who is not told of
// it. Its Number would be greater than 1.
func effects(s *story) (found []Finding) {
	forgotten := map[string]bool{} // leases that were found already
	for i := range s.Effects {
		effect := &s.Effects[i]
		l := s.named[effect.Lease]
		if l == nil || !l.lock.attempt || l.lock.key != effect.Key {
			found = append(found, Finding{Check: "effects", Text: fmt.Sprintf(
				"client %d of process %d charged for %s at %d, and no attempt of its was to run", effect.Client, effect.Process, effect.Key, effect.At)})
			continue
		}
		if again := s.forgotten(l); again != nil && !forgotten[l.name] {
			forgotten[l.name] = true
			found = append(found, Finding{Check: "effects", Text: fmt.Sprintf(
				"%s took effect at %d, was not aborted, and %s ran as the first", name(l.grant), effect.At, name(again))})
		}
	}
	return found
}

// forgotten returns an attempt that ran as if another had not, if there is one.
func (s *story) forgotten(l *lease) *history.Op {
	if l.end != nil && l.end.Kind == history.Abort {
		return nil
	}
	for _, later := range s.leases[l.lock] {
		if later.grant.Call > l.grant.Return && later.grant.Return < l.lost && later.grant.Number == 1 {
			return later.grant
		}
	}
	return nil
}
