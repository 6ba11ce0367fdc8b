package validate

import (
	"fmt"
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
