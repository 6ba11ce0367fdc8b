package validate

import (
	"fmt"
	"slices"
	"time"
)

// renewalsPerTTL is how often a lease is renewed in a TTL, at least.
const renewalsPerTTL = 3

// staleHolders finds leases that a loss of data removed, and whose holders relied on them
// long after another client was granted a lease that excludes them. From that grant on a renewal cannot find
// the token of the lease, so the next renewal ends the lease, unless something was
// disrupted. That may take the interval of renewals and two commands. An extended lease is
// not renewed while it is long enough, and an unrenewed one ends by itself.
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
			patience := patience + s.renewalDelays(next.grant.Call, until)
			if until > next.grant.Return+patience && !s.isOverloadedOrDisrupted(l.grant.Process, next.grant.Call, until) {
				found = append(found, Violation{Check: checkStaleHolder, Text: fmt.Sprintf(
					"%s lost its key at %d, and its holder relied on it until %d, %v after %s", callName(l.grant), l.lossFrom, until,
					time.Duration(until-next.grant.Return), callName(next.grant))})
			}
		}
	}
	return found
}

// renewalDelays returns for how long stalls of the machine may have delayed renewals between
// two times. The command at the time of a stall may fail, and the next one as well.
func (s *summary) renewalDelays(from, to int64) (sum int64) {
	for _, t := range s.Disruptions {
		if isStall(t) && t.From <= to && timeOrNever(t.To) >= from {
			sum += timeOrNever(t.To) - t.From + 2*s.commandTimeout()
		}
	}
	return sum
}

// isOverloadedOrDisrupted reports whether the machine was too slow, or a process was paused or
// anything was injected between two times.
func (s *summary) isOverloadedOrDisrupted(process int, from, to int64) bool {
	_, paused := s.pausedSince(process, from, to)
	return paused || s.overloaded || s.isDisrupted(from, to, isDeliberate)
}

// nextHolder returns the first lease of the same key that was requested after the loss of
// this one, and that Redis cannot have granted beside it: a lease that excludes it, or one of
// as many shared leases as their limits allow.
func (s *summary) nextHolder(l *lease) *lease {
	var over int64 = never
	for _, loss := range s.losses {
		if loss.From == l.lossFrom && concernsKey(loss, l.lock.key) {
			over = loss.To
		}
	}
	var others []*lease // the shared leases whose holders rely on them at the next grant
	for _, next := range s.leases[l.lock] {
		if next.requested < over {
			continue
		}
		others = slices.DeleteFunc(others, func(other *lease) bool { return s.reliedUntil(other) <= next.grant.Return })
		others = append(others, next)
		most := capacity(l.grant)
		for _, other := range others {
			most = max(most, capacity(other.grant))
		}
		if excludes(l.grant, next.grant) || len(others) >= most {
			return next
		}
	}
	return nil
}

// lastRelied returns until when the holder is known to have relied on the lease, even while
// it was stale.
func (s *summary) lastRelied(l *lease) int64 {
	if l.end == nil || l.end.ReliedUntil == 0 {
		return l.grant.Return
	}
	return l.end.ReliedUntil
}
