package check

import (
	"fmt"

	"github.com/reqlock/reqlock/faults/internal/history"
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

// lost returns the accepted writes that did not build on the one before.
func lost(h *history.History, fenced bool) (found []*history.Access) {
	versions := map[register]int64{}
	for i := range h.Accesses {
		access := &h.Accesses[i]
		if access.Fenced != fenced || !access.Write || access.Refused {
			continue
		}
		r := register{access.Key, fenced}
		if access.Version != versions[r] {
			found = append(found, access)
		}
		versions[r]++
	}
	return found
}

// registers finds lost updates. A register that looks at fences must never lose
// one, whatever happens to Redis. One that does not may, where data was lost, and
// where clients are careless.
func registers(s *story) (found []Finding) {
	for _, access := range lost(s.History, true) {
		found = append(found, lostUpdate("fenced", access))
	}
	if s.Careless || len(s.losses) > 0 {
		return found
	}
	for _, access := range lost(s.History, false) {
		found = append(found, lostUpdate("unfenced", access))
	}
	return found
}

func lostUpdate(which string, access *history.Access) Finding {
	return Finding{Check: which, Text: fmt.Sprintf(
		"client %d of process %d wrote to %s at %d, with the fence %d, over a version later than %d, on which it built",
		access.Client, access.Process, access.Key, access.At, access.Fence, access.Version)}
}
