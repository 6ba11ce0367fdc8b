package validate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// NoGrants is the prefix of the name of a Disruption during which no lock can be granted,
// because too few servers vote or too few replicas acknowledge.
const NoGrants = "no lock can be granted"

// Minority is the prefix of the name of a Disruption of a minority of a quorum. It does not
// affect a call that waits for a lock.
const Minority = "a minority"

// Outage is the prefix of the name of a Disruption during which no server replies, or only a
// minority of a quorum.
const Outage = "an outage"

// impossibleGrants finds leases that were requested and granted during a disruption in
// which no lock can be granted.
//
// Another call of the same process that was made earlier may have been granted the key, and
// handed it off.
func impossibleGrants(s *summary) (found []Violation) {
	for _, disruption := range s.Disruptions {
		if !strings.HasPrefix(disruption.Name, NoGrants) {
			continue
		}
		for _, key := range s.locks {
			for _, l := range s.leases[key] {
				if l.requested <= disruption.From || l.grant.Return >= timeOrNever(disruption.To) || s.mayInherit(l, disruption.From) {
					continue
				}
				found = append(found, Violation{Check: checkImpossibleGrant, Text: fmt.Sprintf(
					"%s was granted at %d, although from %d on %s", callName(l.grant), l.grant.Return, disruption.From, disruption.Name)})
			}
		}
	}
	return found
}

// mayInherit reports whether an earlier call of the same process, which lasted at a time,
// may have handed its lease off to this one.
func (s *summary) mayInherit(l *lease, moment int64) bool {
	return slices.ContainsFunc(s.calls[l.lock], func(other *history.Op) bool {
		return other.Process == l.grant.Process && other.Call <= moment && s.returnedAt(other) >= l.requested
	})
}

// isHarmless reports whether a disruption does not affect a call. It may affect a Try: a
// Try has the time of one command, and while some servers do not answer, a split vote takes
// longer to detect.
func isHarmless(t history.Disruption, op *history.Op) bool {
	return strings.HasPrefix(t.Name, Minority) && op.Kind == history.Lock
}

// failFastSlack is how late a process may refuse new calls in an outage, and how long a
// refusal may take, because the machine is busy.
const failFastSlack = schedulingDelay

// lateRefusals finds calls that were not refused at once, although no server had replied for
// the time of WithFailFast when they were made.
//
// A process learns of an outage when a command fails. The process of a call knew of the
// outage for long enough if an earlier call, made in the outage, had returned that Redis is
// unavailable.
func lateRefusals(s *summary) (found []Violation) {
	if s.FailFast == 0 {
		return nil
	}
	for _, outage := range s.Disruptions {
		if !strings.HasPrefix(outage.Name, Outage) {
			continue
		}
		known := s.firstFailures(outage)
		for _, key := range s.locks {
			for _, op := range s.calls[key] {
				since, did := known[op.Process]
				if !did || !isNewCall(op) || op.Call <= since+s.FailFast+int64(failFastSlack) ||
					op.Call >= timeOrNever(outage.To)-int64(failFastSlack) || s.isRefusedAtOnce(op) || s.mayRefuseLate(key, op) {
					continue
				}
				found = append(found, Violation{Check: checkFailFast, Text: fmt.Sprintf(
					"%s, was %q after %v, although its process knew %v before that no server replied (%s)", callName(op), op.Outcome,
					time.Duration(s.returnedAt(op)-op.Call), time.Duration(op.Call-since), outage.Name)})
			}
		}
	}
	return found
}

// firstFailures returns, for each process, when the first call that was made in an outage
// returned that Redis is unavailable.
func (s *summary) firstFailures(outage history.Disruption) map[int]int64 {
	known := map[int]int64{}
	for i := range s.Ops {
		op := &s.Ops[i]
		if op.Outcome != history.Unavailable || op.Call < outage.From || op.Return >= timeOrNever(outage.To) {
			continue
		}
		if first, did := known[op.Process]; !did || op.Return < first {
			known[op.Process] = op.Return
		}
	}
	return known
}

// isNewCall reports whether a call is one of those that a long outage refuses.
func isNewCall(op *history.Op) bool {
	return op.Kind == history.Lock || op.Kind == history.Try || op.Kind == history.Begin
}

// refusedWithin is how long the refusal of a new call may take. A call whose refusal needs no
// command takes no time, but one command is allowed.
func (s *summary) refusedWithin() int64 { return s.CommandTimeout + int64(failFastSlack) }

func (s *summary) isRefusedAtOnce(op *history.Op) bool {
	return op.Outcome == history.Unavailable && op.Return-op.Call <= s.refusedWithin()
}

// mayRefuseLate reports whether a call need not be refused at once. Its process may have held
// the key, whose lease passes to other callers of the process; or the process did not run.
func (s *summary) mayRefuseLate(key lock, op *history.Op) bool {
	soon := op.Call + s.refusedWithin()
	if _, did := s.pausedSince(op.Process, op.Call, soon); did || s.killedAt(op.Process) <= soon {
		return true
	}
	lagged := slices.ContainsFunc(s.Lags, func(lag history.Lag) bool {
		return lag.Process == op.Process && lag.From <= soon && lag.To >= op.Call-s.CommandTimeout
	})
	return lagged || s.mayBeSlow(op.Call, soon) || slices.ContainsFunc(s.leases[key], func(l *lease) bool {
		held := l.grant != op && l.grant.Process == op.Process && l.grant.Return <= soon
		return held && (!l.isValidityFinal || op.Call <= l.knownValidity+int64(failFastSlack))
	})
}
