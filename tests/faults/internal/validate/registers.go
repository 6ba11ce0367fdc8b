package validate

import (
	"fmt"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// A register is one of the two that each key guards.
type register struct {
	key    string
	fenced bool
}

// LostUpdates returns how many accepted writes, to the registers that look at
// fences or to those that do not, did not build on the accepted write before
// them: what that one wrote is lost. Where clients are careless there have to be
// some in the registers that do not look at fences, or a campaign has seen
// nothing.
func LostUpdates(h *history.History, fenced bool) int {
	return len(lostWrites(h, fenced))
}

// A lostWrite is an accepted write that did not build on the one before.
type lostWrite struct {
	*history.Access
	before *history.Access // what was accepted before it; nil if nothing was
}

// lostWrites returns the accepted writes that did not build on the one before.
func lostWrites(h *history.History, fenced bool) (found []lostWrite) {
	versions := map[register]int64{}
	last := map[register]*history.Access{}
	for i := range h.Accesses {
		access := &h.Accesses[i]
		if access.Fenced != fenced || !access.Write || access.Refused {
			continue
		}
		r := register{access.Key, fenced}
		if access.Version != versions[r] {
			found = append(found, lostWrite{access, last[r]})
		}
		versions[r]++
		last[r] = access
	}
	return found
}

// lostUpdates finds lost updates. A register that looks at fences must never lose
// one, whatever happens to Redis. One that does not may, where clients are
// careless, and where either of the two that wrote was there beyond what a lock
// can prevent.
func lostUpdates(s *summary) (found []Violation) {
	for _, write := range lostWrites(s.History, true) {
		found = append(found, lostUpdateViolation(checkFencedUpdates, write.Access))
	}
	if s.Careless {
		return found
	}
	for _, write := range lostWrites(s.History, false) {
		if !s.isUnpreventable(write.Access) && !s.isUnpreventable(write.before) {
			found = append(found, lostUpdateViolation(checkUnfencedUpdates, write.Access))
		}
	}
	return found
}

// isUnpreventable reports whether no lock could have prevented a write from being beside
// another: its writer was a ghost, or stood still after it had last seen that its
// lease was valid.
func (s *summary) isUnpreventable(write *history.Access) bool {
	if write == nil {
		return false
	}
	if _, did := s.pausedSince(write.Process, write.CheckedAt, write.At); write.CheckedAt != 0 && (did || s.isDisrupted(write.CheckedAt, write.At, isStall)) {
		return true
	}
	var under *lease // the last one that it had: without fences they all look alike
	for _, l := range s.leases[lock{write.Key, false}] {
		if g := l.grant; g.Process == write.Process && g.Client == write.Client && g.Fence == write.Fence && g.Return <= write.At {
			under = l
		}
	}
	return under != nil && under.lossFrom <= write.At
}

func lostUpdateViolation(which string, access *history.Access) Violation {
	return Violation{Check: which, Text: fmt.Sprintf(
		"client %d of process %d wrote to %s at %d, with the fence %d, over a version later than %d, on which it built",
		access.Client, access.Process, access.Key, access.At, access.Fence, access.Version)}
}
