package validate

import (
	"fmt"
	"slices"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
	exclusion "github.com/reqlock/reqlock/tests/internal/history"
)

// overlappingHolders finds leases that were granted while the holders of other leases of the
// same key relied on them, although one of the leases is exclusive, or although there were
// more shared leases than any of their limits allows. A holder relies on a lease from the
// return of its grant, on the common clock of all processes. Attempts count as leases.
func overlappingHolders(s *summary) (found []Violation) {
	for _, key := range s.locks {
		holds := make(exclusion.Holds, len(s.leases[key]))
		for i, l := range s.leases[key] {
			until := s.reliedUntil(l)
			holds[i] = &exclusion.Hold{
				Key: key.key, Limit: l.grant.Limit,
				Holder:  fmt.Sprintf("%s, relied on from %d to %d", callName(l.grant), l.grant.Return, until),
				Granted: time.Duration(l.grant.Return), Ended: time.Duration(until),
				Lost: l.contextEnded != never && !l.callerEnded,
			}
		}
		for _, text := range holds.Exclusion() {
			found = append(found, Violation{Check: checkMutualExclusion, Text: text})
		}
		for _, text := range holds.Limits() {
			found = append(found, Violation{Check: checkLimit, Text: text})
		}
	}
	return found
}

// schedulingDelay is how late a running process may notice the end of its lease, or stop
// working, because the machine is busy.
const schedulingDelay = 250 * time.Millisecond

// lateLeaseEnds finds leases whose validity had ended long before their holder was notified
// or released them, although the process ran, and the machine was not overloaded.
func lateLeaseEnds(s *summary) (found []Violation) {
	if s.overloaded {
		return nil
	}
	for _, key := range s.locks {
		for _, l := range s.leases[key] {
			notified := l.contextEnded
			if l.end != nil {
				notified = min(notified, l.end.Call)
			}
			over := max(l.knownValidity, l.grant.Return)
			if !l.isValidityFinal || notified == never || notified <= over+int64(schedulingDelay) || s.wasPausedOrStalled(l.grant.Process, over, notified) {
				continue
			}
			found = append(found, Violation{Check: checkLeaseEnd, Text: fmt.Sprintf(
				"%s was valid until %d, and its holder was notified %v later", callName(l.grant), l.knownValidity, time.Duration(notified-l.knownValidity))})
		}
	}
	return found
}

// wasPausedOrStalled reports whether a process was paused, or the machine stalled, between
// two times.
func (s *summary) wasPausedOrStalled(process int, from, to int64) bool {
	if _, did := s.pausedSince(process, from, to); did {
		return true
	}
	return s.isDisrupted(from, to, isLongStall)
}

// isLongStall reports whether a disruption is a stall that may delay a process by more than
// the tolerance.
func isLongStall(t history.Disruption) bool {
	return isStall(t) && timeOrNever(t.To)-t.From > int64(schedulingDelay/5)
}

// isDisrupted reports whether a matching disruption lasted at some time between two times.
func (s *summary) isDisrupted(from, to int64, such func(history.Disruption) bool) bool {
	for _, disruption := range s.Disruptions {
		if disruption.From <= to && timeOrNever(disruption.To) >= from && such(disruption) {
			return true
		}
	}
	return false
}

// renewalsPerTTL is how often a lease is renewed in a TTL, at least.
const renewalsPerTTL = 3

// staleHolders finds leases that a loss of data removed, and whose holders relied on them
// long after another client was granted a lease that excludes them. From that grant on a renewal cannot find
// the token of the lease, so the next renewal ends the lease, unless something was
// disrupted. That may take the interval of renewals and two commands. An extended lease is
// not renewed while it is long enough, and an unrenewed one ends by itself.
func staleHolders(s *summary) (found []Violation) {
	patience := s.TTL/renewalsPerTTL + 2*s.CommandTimeout + int64(schedulingDelay)
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
			sum += timeOrNever(t.To) - t.From + 2*s.CommandTimeout
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

// earlyGrants finds leases that were granted before the minimal hold of an earlier lease of
// the same key had ended, whose holder had released it.
//
// The key is known to stay locked only if its holder has released it with success: a process
// that dies leaves the key to its TTL, and a release without a reply may free the key.
func earlyGrants(s *summary) (found []Violation) {
	for _, key := range s.locks {
		for i, l := range s.leases[key] {
			if l.isStale() || !l.isKept() || l.end.Kind != history.Release {
				continue
			}
			for _, next := range s.leases[key][i+1:] {
				if next.grant.Return >= min(l.keptUntil(), l.lossFrom) {
					break
				}
				if next.grant.ValidUntil <= l.grant.Return {
					continue // it was granted earlier, and its process learned of it late
				}
				found = append(found, Violation{Check: checkMinHold, Text: fmt.Sprintf(
					"%s was granted at %d, %v before the end of the minimal hold of %s, which was released at %d", callName(next.grant), next.grant.Return,
					time.Duration(l.keptUntil()+int64(clockSkew)-next.grant.Return), callName(l.grant), l.end.Call)})
			}
		}
	}
	return found
}
