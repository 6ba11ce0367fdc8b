package check

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// overlaps finds the leases that were granted while another one of the same key
// was believed in: from the return of the grant to the end of the belief, which
// is on one clock for all processes. One that was over before it was granted was
// never believed in. Attempts count as the leases that they hold.
func overlaps(s *story) (found []Finding) {
	for _, key := range s.locks {
		var last *lease // the one that is believed in for longest so far
		var until int64
		for _, l := range s.leases[key] {
			end := s.believed(l)
			if end <= l.grant.Return {
				continue
			}
			if last != nil && l.grant.Return < until {
				found = append(found, Finding{Check: "believed", Text: fmt.Sprintf(
					"%s was granted at %d, %v before the end of %s, which was believed in until %d", name(l.grant), l.grant.Return,
					time.Duration(until-l.grant.Return), name(last.grant), until)})
			}
			if last == nil || end > until {
				last, until = l, end
			}
		}
	}
	return found
}

// lateness is by how much a holder whose process runs may be told too late, or
// end its work, on a busy machine.
const lateness = 250 * time.Millisecond

// untold finds the leases whose validity ended long before their holder was told
// or gave them back, although its process ran.
func untold(s *story) (found []Finding) {
	for _, key := range s.locks {
		for _, l := range s.leases[key] {
			heard := l.told
			if l.end != nil {
				heard = min(heard, l.end.Call)
			}
			over := max(l.known, l.grant.Return)
			if !l.final || heard == never || heard <= over+int64(lateness) || s.stalled(l.grant.Process, over, heard) {
				continue
			}
			found = append(found, Finding{Check: "told", Text: fmt.Sprintf(
				"%s was valid until %d, and heard of its end %v later", name(l.grant), l.known, time.Duration(heard-l.known))})
		}
	}
	return found
}

// stalled reports whether a process, or the whole machine, stood still at any
// time between two moments.
func (s *story) stalled(process int, from, to int64) bool {
	if _, did := s.stood(process, from, to); did {
		return true
	}
	return s.troubled(from, to, longStall)
}

// longStall reports whether a trouble is a stall that may make somebody late by
// more than what is allowed anyhow.
func longStall(t history.Trouble) bool {
	return isStall(t) && orNever(t.To)-t.From > int64(lateness/5)
}

// troubled reports whether there was such a trouble at any time between two
// moments.
func (s *story) troubled(from, to int64, such func(history.Trouble) bool) bool {
	for _, trouble := range s.Troubles {
		if trouble.From <= to && orNever(trouble.To) >= from && such(trouble) {
			return true
		}
	}
	return false
}
