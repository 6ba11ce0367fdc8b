package validate

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// overlappingHolders finds the leases that were granted while another one of the same key
// was believed in: from the return of the grant to the end of the belief, which
// is on one clock for all processes. One that was over before it was granted was
// never believed in. Attempts count as the leases that they hold.
func overlappingHolders(s *summary) (found []Violation) {
	for _, key := range s.locks {
		var last *lease // the one that is believed in for longest so far
		var until int64
		for _, l := range s.leases[key] {
			end := s.reliedUntil(l)
			if end <= l.grant.Return {
				continue
			}
			if last != nil && l.grant.Return < until {
				found = append(found, Violation{Check: checkMutualExclusion, Text: fmt.Sprintf(
					"%s was granted at %d, %v before the end of %s, which was believed in until %d", callName(l.grant), l.grant.Return,
					time.Duration(until-l.grant.Return), callName(last.grant), until)})
			}
			if last == nil || end > until {
				last, until = l, end
			}
		}
	}
	return found
}

// schedulingDelay is by how much a holder whose process runs may be told too late, or
// end its work, on a busy machine.
const schedulingDelay = 250 * time.Millisecond

// lateLeaseEnds finds the leases whose validity ended long before their holder was told
// or gave them back, although its process ran.
func lateLeaseEnds(s *summary) (found []Violation) {
	for _, key := range s.locks {
		for _, l := range s.leases[key] {
			heard := l.contextEnded
			if l.end != nil {
				heard = min(heard, l.end.Call)
			}
			over := max(l.knownValidity, l.grant.Return)
			if !l.isValidityFinal || heard == never || heard <= over+int64(schedulingDelay) || s.wasPausedOrStalled(l.grant.Process, over, heard) {
				continue
			}
			found = append(found, Violation{Check: checkLeaseEnd, Text: fmt.Sprintf(
				"%s was valid until %d, and heard of its end %v later", callName(l.grant), l.knownValidity, time.Duration(heard-l.knownValidity))})
		}
	}
	return found
}

// wasPausedOrStalled reports whether a process, or the whole machine, stood still at any
// time between two moments.
func (s *summary) wasPausedOrStalled(process int, from, to int64) bool {
	if _, did := s.pausedSince(process, from, to); did {
		return true
	}
	return s.isDisrupted(from, to, isLongStall)
}

// isLongStall reports whether a trouble is a stall that may make somebody late by
// more than what is allowed anyhow.
func isLongStall(t history.Disruption) bool {
	return isStall(t) && timeOrNever(t.To)-t.From > int64(schedulingDelay/5)
}

// isDisrupted reports whether there was such a trouble at any time between two
// moments.
func (s *summary) isDisrupted(from, to int64, such func(history.Disruption) bool) bool {
	for _, disruption := range s.Disruptions {
		if disruption.From <= to && timeOrNever(disruption.To) >= from && such(disruption) {
			return true
		}
	}
	return false
}
