package validate

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// overlappingHolders finds leases that were granted while the holder of another lease of
// the same key relied on that lease. A holder relies on a lease from the return of its
// grant, on the common clock of all processes. Attempts count as leases.
func overlappingHolders(s *summary) (found []Violation) {
	for _, key := range s.locks {
		var last *lease // the lease whose holder relies on it for longest
		var until int64
		for _, l := range s.leases[key] {
			end := s.reliedUntil(l)
			if end <= l.grant.Return {
				continue
			}
			if last != nil && l.grant.Return < until {
				found = append(found, Violation{Check: checkMutualExclusion, Text: fmt.Sprintf(
					"%s was granted at %d, %v before the end of %s, whose holder relied on it until %d", callName(l.grant), l.grant.Return,
					time.Duration(until-l.grant.Return), callName(last.grant), until)})
			}
			if last == nil || end > until {
				last, until = l, end
			}
		}
	}
	return found
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
