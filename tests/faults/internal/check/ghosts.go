package check

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// renewals is how many times in a TTL a lease is renewed at least.
const renewals = 3

// ghosts finds the leases that were granted before a loss of data and believed in
// long after it had made them ghosts: somebody else was granted the key, and asked
// for it after the loss. From then on no renewal can have found their token in it,
// so the next one told them, unless something was broken: a renewal, and one more
// command for which it may have had to wait. One that was extended is not renewed
// for as long as it is, and one that is not renewed at all ends by itself.
func ghosts(s *story) (found []Finding) {
	patience := s.TTL/renewals + 2*s.command() + int64(lateness)
	for _, key := range s.locks {
		for _, l := range s.leases[key] {
			if l.lost == never || l.ghostly() || l.grant.Unrenewed || len(l.extends) > 0 {
				continue
			}
			next := s.successor(l)
			if next == nil {
				continue
			}
			until := s.relied(l)
			if until > next.grant.Return+patience && !s.hindered(l.grant.Process, next.grant.Call, until) {
				found = append(found, Finding{Check: "ghosts", Text: fmt.Sprintf(
					"%s lost its key at %d, and was believed in until %d, %v after %s", name(l.grant), l.lost, until,
					time.Duration(until-next.grant.Return), name(next.grant))})
			}
		}
	}
	return found
}

// hindered reports whether anything was broken between two moments, or a process
// or the machine was slow.
func (s *story) hindered(process int, from, to int64) bool {
	_, stood := s.stood(process, from, to)
	return stood || s.slow(from, to) || s.troubled(from, to, func(history.Trouble) bool { return true })
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
