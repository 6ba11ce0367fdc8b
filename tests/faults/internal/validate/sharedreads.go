package validate

import (
	"fmt"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

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
