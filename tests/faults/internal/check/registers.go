package check

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
	return len(lost(h, fenced))
}

// A lostWrite is an accepted write that did not build on the one before.
type lostWrite struct {
	*history.Access
	before *history.Access // what was accepted before it; nil if nothing was
}

// lost returns the accepted writes that did not build on the one before.
func lost(h *history.History, fenced bool) (found []lostWrite) {
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

// registers finds lost updates. A register that looks at fences must never lose
// one, whatever happens to Redis. One that does not may, where clients are
// careless, and where either of the two that wrote was there beyond what a lock
// can prevent.
func registers(s *story) (found []Finding) {
	for _, write := range lost(s.History, true) {
		found = append(found, lostUpdate("fenced", write.Access))
	}
	if s.Careless {
		return found
	}
	for _, write := range lost(s.History, false) {
		if !s.beyond(write.Access) && !s.beyond(write.before) {
			found = append(found, lostUpdate("unfenced", write.Access))
		}
	}
	return found
}

// beyond reports whether no lock could have prevented a write from being beside
// another: its writer was a ghost, or stood still after it had last seen that its
// lease was valid.
func (s *story) beyond(write *history.Access) bool {
	if write == nil {
		return false
	}
	if _, did := s.stood(write.Process, write.Looked, write.At); write.Looked != 0 && (did || s.troubled(write.Looked, write.At, isStall)) {
		return true
	}
	var under *lease // the last one that it had: without fences they all look alike
	for _, l := range s.leases[lock{write.Key, false}] {
		if g := l.grant; g.Process == write.Process && g.Client == write.Client && g.Fence == write.Fence && g.Return <= write.At {
			under = l
		}
	}
	return under != nil && under.lost <= write.At
}

func lostUpdate(which string, access *history.Access) Finding {
	return Finding{Check: which, Text: fmt.Sprintf(
		"client %d of process %d wrote to %s at %d, with the fence %d, over a version later than %d, on which it built",
		access.Client, access.Process, access.Key, access.At, access.Fence, access.Version)}
}
