package validate

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// renewalsPerTTL is how many times in a TTL a lease is renewed at least.
const renewalsPerTTL = 3

// staleHolders finds the leases that were granted before a loss of data and believed in
// long after it had made them ghosts: somebody else was granted the key, and asked
// for it after the loss. From then on no renewal can have found their token in it,
// so the next one told them, unless something was broken: a renewal, and one more
// command for which it may have had to wait. One that was extended is not renewed
// for as long as it is, and one that is not renewed at all ends by itself.
func staleHolders(s *summary) (found []Violation) {
	patience := s.TTL/renewalsPerTTL + 2*s.commandTimeout() + int64(schedulingDelay)
	for _, key := range s.locks {
		for _, l := range s.leases[key] {
			if l.lossFrom == never || l.isStale() || l.grant.Unrenewed || len(l.extends) > 0 {
				continue
			}
			next := s.nextHolder(l)
			if next == nil {
				continue
			}
			until := s.lastRelied(l)
			if until > next.grant.Return+patience && !s.isHindered(l.grant.Process, next.grant.Call, until) {
				found = append(found, Violation{Check: checkStaleHolder, Text: fmt.Sprintf(
					"%s lost its key at %d, and was believed in until %d, %v after %s", callName(l.grant), l.lossFrom, until,
					time.Duration(until-next.grant.Return), callName(next.grant))})
			}
		}
	}
	return found
}

// isHindered reports whether anything was broken between two moments, or a process
// or the machine was slow.
func (s *summary) isHindered(process int, from, to int64) bool {
	_, stood := s.pausedSince(process, from, to)
	return stood || s.mayBeSlow(from, to) || s.isDisrupted(from, to, func(history.Disruption) bool { return true })
}

// nextHolder returns the first lease of the same key that was asked for after the
// loss that took the key from this one.
func (s *summary) nextHolder(l *lease) *lease {
	var over int64 = never
	for _, loss := range s.losses {
		if loss.From == l.lossFrom && concernsKey(loss, l.lock.key) {
			over = loss.To
		}
	}
	for _, next := range s.leases[l.lock] {
		if next.requested >= over {
			return next
		}
	}
	return nil
}

// lastRelied returns until when the holder of a lease is known to have relied on it,
// also where it was a ghost.
func (s *summary) lastRelied(l *lease) int64 {
	if l.end == nil || l.end.ReliedUntil == 0 {
		return l.grant.Return
	}
	return l.end.ReliedUntil
}
