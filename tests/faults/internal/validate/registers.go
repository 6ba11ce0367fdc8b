package validate

import (
	"fmt"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// A register is one of the two registers of a key.
type register struct {
	key    string
	fenced bool
}

// LostUpdates returns how many accepted writes, to fenced or to unfenced registers, were
// not based on the accepted write before them, and so lost its update. Careless clients
// must lose updates of unfenced registers: otherwise a campaign could not see a lost
// update.
func LostUpdates(h *history.History, fenced bool) int {
	return len(lostWrites(h, fenced))
}

// A lostWrite is an accepted write that was not based on the one before it.
type lostWrite struct {
	*history.Access
	before *history.Access // the accepted write before it; nil if there was none
}

// lostWrites returns the accepted writes that were not based on the one before them.
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

// lostUpdates finds lost updates. A fenced register must never lose an update. An unfenced
// one may lose updates of careless clients, and updates that no lock could have prevented.
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

// isUnpreventable reports whether no lock could have prevented a write: the lease of the
// writer was stale, or its process was paused after it had last checked the lease.
func (s *summary) isUnpreventable(write *history.Access) bool {
	if write == nil {
		return false
	}
	if _, did := s.pausedSince(write.Process, write.CheckedAt, write.At); write.CheckedAt != 0 && (did || s.isDisrupted(write.CheckedAt, write.At, isStall)) {
		return true
	}
	var under *lease // the writer's last lease: without fencing numbers they all look alike
	for _, l := range s.leases[lock{write.Key, false}] {
		if g := l.grant; g.Process == write.Process && g.Client == write.Client && g.Fence == write.Fence && g.Return <= write.At {
			under = l
		}
	}
	return under != nil && under.lossFrom <= write.At
}

func lostUpdateViolation(which string, access *history.Access) Violation {
	return Violation{Check: which, Text: fmt.Sprintf(
		"client %d of process %d wrote to %s at %d, with the fence %d, over a later version than %d, on which it is based",
		access.Client, access.Process, access.Key, access.At, access.Fence, access.Version)}
}

// changedReads finds shared leases under which a register changed: its holder read two
// versions, and saw that the lease was valid before the second one. The check needs no clock
// except for the pauses that excuse a holder.
func changedReads(s *summary) (found []Violation) {
	reads := map[readerID][]*history.Access{}
	for i := range s.Accesses {
		if access := &s.Accesses[i]; !access.Write && !access.Fenced {
			id := readerID{access.Key, access.Process, access.Client}
			reads[id] = append(reads[id], access)
		}
	}
	for _, key := range s.locks {
		for _, l := range s.leases[key] {
			if l.grant.Limit != history.Unlimited {
				continue
			}
			first, second := pairOf(reads[readerID{key.key, l.grant.Process, l.grant.Client}], l)
			if second == nil || first.Version == second.Version || s.isUnpreventableRead(l, second) {
				continue
			}
			found = append(found, Violation{Check: checkSharedReads, Text: fmt.Sprintf(
				"%s read the version %d of %s at %d, and the version %d at %d", callName(l.grant), first.Version, key.key, first.At,
				second.Version, second.At)})
		}
	}
	return found
}

// A readerID identifies a client that reads a key.
type readerID struct {
	key             string
	process, client int
}

// pairOf returns the first read under a lease, and the second one, for which the holder
// checked the lease; nil if there are none. A client makes one call after the other.
func pairOf(reads []*history.Access, l *lease) (first, second *history.Access) {
	for _, read := range reads {
		switch {
		case read.At < l.grant.Return || l.end != nil && read.At > l.end.Call:
		case first == nil:
			first = read
		case second == nil && read.CheckedAt != 0:
			second = read
		}
	}
	return first, second
}

// isUnpreventableRead reports whether no lock could have prevented that a register changed:
// the lease was stale, or the reader's process did not run after it had last checked the
// lease.
func (s *summary) isUnpreventableRead(l *lease, read *history.Access) bool {
	_, did := s.pausedSince(read.Process, read.CheckedAt, read.At)
	return did || s.isDisrupted(read.CheckedAt, read.At, isStall) || l.lossFrom <= read.At
}
