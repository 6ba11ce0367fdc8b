package validate

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// servedWithin is within what time whoever waits is served once nothing is broken
// any more, on a slow machine.
const servedWithin = 10 * time.Second

// unservedCalls finds who was forgotten: calls that never returned, waits that went
// on for long when all was well again or when they were over, and keys that nobody
// got any more.
func unservedCalls(s *summary) (found []Violation) {
	for _, key := range s.locks {
		for _, op := range s.calls[key] {
			if op.Return == 0 && s.killedAt(op.Process) == never {
				found = append(found, Violation{Check: checkLiveness, Text: callName(op) + ", never returned"})
			}
			if late := s.lateness(op); late > int64(servedWithin) {
				found = append(found, Violation{Check: checkLiveness, Text: fmt.Sprintf(
					"%s, waited for %v after it was to end, or all was well", callName(op), time.Duration(late))})
			}
		}
		if op := s.unservedCall(key); op != nil {
			found = append(found, Violation{Check: checkLiveness, Text: fmt.Sprintf(
				"nobody got %s after all was well, though %s asked, and nobody held it throughout", key.key, callName(op))})
		}
	}
	return found
}

// lateness returns for how long a call that waits went on after it should have come
// to an end: when its own wait is over, or, of one that waits for ever, from when
// all is well. A process that stands still is not late.
func (s *summary) lateness(op *history.Op) int64 {
	if op.Return == 0 || op.Kind != history.Lock && op.Kind != history.Begin {
		return 0
	}
	from := op.Call + op.Wait
	if op.Wait == 0 {
		if s.Recovered == 0 {
			return 0
		}
		from = max(op.Call, s.Recovered)
		if well := s.undisruptedSince(op); well != never {
			from = max(op.Call, min(s.Recovered, well))
		}
	}
	if _, did := s.pausedSince(op.Process, op.Call, op.Return); did {
		return 0
	}
	return op.Return - from
}

// undisruptedSince returns since when nothing was broken any more that a call suffers from,
// when it returned; never if something was. Only of a quorum is there such a time
// before all was well.
func (s *summary) undisruptedSince(op *history.Op) (since int64) {
	if s.Deployment != "quorum" {
		return never
	}
	for _, t := range s.Disruptions {
		if !isStall(t) && !isHarmless(t, op) && t.From <= op.Return {
			since = max(since, after(t.To, s.recoveryTime()))
		}
	}
	if since > op.Return {
		return never
	}
	return since
}

// unservedCall returns a call for a lock after all was well, if nobody was granted
// the lock any more, and nobody held it all the time either. A request that is
// answered, or refused since its outcome is not known, is served too; and whoever
// died with it may keep it for a while.
func (s *summary) unservedCall(key lock) (asked *history.Op) {
	if s.Recovered == 0 {
		return nil
	}
	calm := s.Recovered
	if key.attempt {
		calm += s.TTL + s.Claim
	}
	for _, op := range s.calls[key] {
		switch {
		case op.Kind == history.Begin && op.Return >= s.Recovered && op.Outcome != history.WaitTimeout:
			return nil
		case op.Kind == history.Lock, op.Kind == history.Begin && op.Wait > int64(clockSkew):
			if op.Call >= calm && s.killedAt(op.Process) == never {
				asked = op
			}
		}
	}
	for _, l := range s.leases[key] {
		if l.grant.Return >= s.Recovered || s.reliedUntil(l) >= s.Ended || key.attempt && asked != nil && s.reliedUntil(l) >= asked.Call {
			return nil
		}
	}
	return asked
}
