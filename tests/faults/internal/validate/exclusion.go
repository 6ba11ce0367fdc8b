package validate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// overlappingHolders finds leases that were granted while the holders of other leases of the
// same key relied on them, although one of the leases is exclusive, or although there were
// more shared leases than any of their limits allows. A holder relies on a lease from the
// return of its grant, on the common clock of all processes. Attempts count as leases.
func overlappingHolders(s *summary) (found []Violation) {
	for _, key := range s.locks {
		var relied []*lease // the leases whose holders rely on them at the next grant
		for _, l := range s.leases[key] {
			if s.reliedUntil(l) <= l.grant.Return {
				continue
			}
			relied = slices.DeleteFunc(relied, func(other *lease) bool { return s.reliedUntil(other) <= l.grant.Return })
			if one := s.overlap(l, relied); one != nil {
				found = append(found, *one)
			}
			relied = append(relied, l)
		}
	}
	return found
}

// overlap returns what is wrong with the grant of a lease while the holders of others rely on
// theirs, or nil.
//
// Each shared lease was granted within its own limit. When its grant returned, more leases
// may have been granted within higher limits. So only the highest limit counts.
func (s *summary) overlap(l *lease, relied []*lease) *Violation {
	var longest *lease // of those that exclude the lease
	most := capacity(l.grant)
	for _, other := range relied {
		if excludes(l.grant, other.grant) && (longest == nil || s.reliedUntil(other) > s.reliedUntil(longest)) {
			longest = other
		}
		most = max(most, capacity(other.grant))
	}
	switch {
	case longest != nil:
		until := s.reliedUntil(longest)
		return &Violation{Check: checkMutualExclusion, Text: fmt.Sprintf(
			"%s was granted at %d, %v before the end of %s, whose holder relied on it until %d", callName(l.grant), l.grant.Return,
			time.Duration(until-l.grant.Return), callName(longest.grant), until)}
	case len(relied) >= most:
		return &Violation{Check: checkLimit, Text: fmt.Sprintf(
			"%s was granted at %d, while the holders of %d other leases relied on them: %s", callName(l.grant), l.grant.Return,
			len(relied), leaseNames(relied))}
	}
	return nil
}

// leaseNames lists leases for a reader.
func leaseNames(leases []*lease) string {
	names := make([]string, len(leases))
	for i, l := range leases {
		names[i] = l.name
	}
	return strings.Join(names, ", ")
}

// schedulingDelay is how late a running process may notice the end of its lease, or stop
// working, because the machine is busy.
const schedulingDelay = 250 * time.Millisecond

// lateLeaseEnds finds leases whose validity had ended long before their holder was notified
// or released them, although the process ran.
func lateLeaseEnds(s *summary) (found []Violation) {
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
