package check

import (
	"fmt"
	"time"
)

// ghosts finds the leases that were granted before a loss of data and believed in
// long after it had made them ghosts: after it, somebody else was granted the key, and from then on no
// renewal can have found their token in it. So their validity ended within a TTL,
// unless they were extended.
func ghosts(s *story) (found []Finding) {
	for _, key := range s.locks {
		for _, l := range s.leases[key] {
			if l.lost == never || l.ghostly() || len(l.extends) > 0 {
				continue
			}
			next := s.successor(l)
			if next == nil {
				continue
			}
			over := next.grant.Return + s.TTL + int64(lateness)
			if until := s.relied(l); until > over && !s.stalled(l.grant.Process, l.grant.Return, until) {
				found = append(found, Finding{Check: "ghosts", Text: fmt.Sprintf(
					"%s lost its key at %d, and was believed in until %d, %v after %s", name(l.grant), l.lost, until,
					time.Duration(until-next.grant.Return), name(next.grant))})
			}
		}
	}
	return found
}

// successor returns the first lease of the same key that was asked for after the
// loss that took the key from this one.
func (s *story) successor(l *lease) *lease {
	var over int64 = never
	for _, loss := range s.losses {
		if loss.From == l.lost && isOf(loss, l.lock.key) {
			over = loss.To
		}
	}
	for _, next := range s.leases[l.lock] {
		if next.asked >= over {
			return next
		}
	}
	return nil
}

// relied returns until when the holder of a lease is known to have relied on it,
// also where it was a ghost.
func (s *story) relied(l *lease) int64 {
	if l.end == nil || l.end.Believed == 0 {
		return l.grant.Return
	}
	return l.end.Believed
}
