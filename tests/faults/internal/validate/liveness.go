package validate

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// servedWithin is how soon a waiter must be served after the last disruption, on a slow
// machine.
const servedWithin = 10 * time.Second

// unservedCalls finds calls that never returned, calls that waited for long after the last
// disruption or after the end of their wait, and keys that were not granted any more.
func unservedCalls(s *summary) (found []Violation) {
	for _, key := range s.locks {
		for _, op := range s.calls[key] {
			if op.Return == 0 && s.killedAt(op.Process) == never {
				found = append(found, Violation{Check: checkLiveness, Text: callName(op) + ", never returned"})
			}
			if late := s.lateness(op); late > int64(servedWithin) {
				found = append(found, Violation{Check: checkLiveness, Text: fmt.Sprintf(
					"%s, waited for %v after the end of its wait or after the last disruption", callName(op), time.Duration(late))})
			}
		}
		if op := s.unservedCall(key); op != nil {
			found = append(found, Violation{Check: checkLiveness, Text: fmt.Sprintf(
				"%s was not granted after the last disruption, although %s requested it, and no client held it throughout", key.key, callName(op))})
		}
	}
	return found
}

// lateness returns for how long a call waited after it should have returned: after its own
// wait, or, if that has no bound, after the last disruption. A paused process is not late.
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

// undisruptedSince returns since when no disruption affects a call, or never. Only a quorum
// can serve a call before all disruptions have ended.
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

// unservedCall returns a call for a lock after the last disruption, if the lock was neither
// granted nor held throughout. A request that is replayed or interrupted is served, too. An
// attempt that died may hold its lock for a while.
func (s *summary) unservedCall(key lock) (asked *history.Op) {
	if s.Recovered == 0 {
		return nil
	}
	servedFrom := s.Recovered
	if key.attempt {
		servedFrom += s.TTL + s.Claim
	}
	for _, op := range s.calls[key] {
		switch {
		case op.Kind == history.Begin && op.Return >= s.Recovered && op.Outcome != history.WaitTimeout:
			return nil
		case op.Kind == history.Lock, op.Kind == history.Begin && op.Wait > int64(clockSkew):
			if op.Call >= servedFrom && s.killedAt(op.Process) == never {
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

// mostGoroutines is the largest allowed number of goroutines of a client process. No
// sequence of messages may make the number grow without a bound.
const mostGoroutines = 500

// goroutineCounts finds client processes with too many goroutines.
func goroutineCounts(s *summary) (found []Violation) {
	for _, size := range s.Sizes {
		if size.Goroutines > mostGoroutines {
			found = append(found, Violation{Check: checkGoroutines, Text: fmt.Sprintf(
				"process %d had %d goroutines, and at most %d are expected", size.Process, size.Goroutines, mostGoroutines)})
		}
	}
	return found
}
