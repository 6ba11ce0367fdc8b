package validate

import (
	"fmt"
	"slices"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// clockSkew is how much earlier a wait may end than its caller has recorded.
const clockSkew = 50 * time.Millisecond

// unexplainedOutcomes finds outcomes without a cause: outcomes that no call may have, and
// outcomes that only a disruption explains, when there was none.
func unexplainedOutcomes(s *summary) (found []Violation) {
	for i := range s.Ops {
		op := &s.Ops[i]
		if why := s.unexplainedOutcome(op); why != "" && !s.isSealed(op) {
			found = append(found, Violation{Check: checkOutcomes, Text: fmt.Sprintf(
				"%s, was %s %s: %q", callName(op), op.Outcome, why, op.Error)})
		}
	}
	return found
}

// unexplainedOutcome describes what is wrong with the outcome of a call, or returns "".
func (s *summary) unexplainedOutcome(op *history.Op) string {
	if s.isKnownDone(op) {
		if why := s.unexplainedAnswer(op); why != "" {
			return why
		}
	}
	waits := op.Kind == history.Lock || op.Kind == history.Begin
	early := op.Wait == 0 || op.Return-op.Call < op.Wait-int64(clockSkew)
	switch op.Outcome {
	case history.Failed:
		return "with an outcome that no call may have"
	case history.Unreplayable:
		return "although no client has sealed it"
	case history.Busy, history.WaitTimeout:
		if waits && early {
			return "although it may wait longer"
		}
	case history.Deadline:
		if (waits || op.Kind == history.Try) && early {
			return "although its context had not ended"
		}
	case history.Lost:
		return s.unexplainedLoss(op)
	case history.Interrupted:
		if s.isUnexplainedInterruption(op) {
			return "although no attempt had died"
		}
	case history.Unavailable:
		if op.Wait != 0 && op.Return-op.Call >= op.Wait {
			return "" // its wait may have ended before any server could answer
		}
		if s.isBesideOpenCommit(op) {
			return "" // sent again after a pause, also when nothing is disrupted any more
		}
		return s.unexplainedFailure(op)
	}
	return ""
}

// unexplainedFailure describes a failure without a disruption during the call or shortly
// before it, or returns "". Before the beginning all clients connect at once, which may
// take long.
func (s *summary) unexplainedFailure(op *history.Op) string {
	isHarmful := func(t history.Disruption) bool { return !isHarmless(t, op) }
	if op.Call < s.Begun || s.mayBeDisruptedBy(op.Process, op.Call, op.Return, isHarmful) ||
		s.mayBeSlow(op.Call, op.Return) || s.hasLagged(op.Process, s.lastCommands(op), op.Return) || s.isSlowForAll(op.Process, op.Call, op.Return) {
		return ""
	}
	return "although nothing was disrupted"
}

// unexplainedLoss describes the loss of a lease without a cause: nothing was disrupted
// since the lease was requested, the holder had not ended it, and the caller's context had
// not ended.
//
// Redis keeps the key at least for the validity at the grant. Within that time, a slow
// machine is no cause.
func (s *summary) unexplainedLoss(op *history.Op) string {
	l := s.byName[op.Lease]
	at := max(op.Call, op.Return)
	from := max(l.grant.Call, min(at, l.knownValidity)-s.TTL) // of the renewals that must have failed
	switch {
	case l.callerEnded, l.lossFrom <= at, s.mayBeDisrupted(op.Process, l.grant.Call, at):
		return ""
	case l.end != nil && l.end != op && l.end.Call <= at:
		return "" // the client had ended the lease itself
	case at < l.grant.ValidUntil-int64(clockSkew):
		return "although it was valid for longer, and nothing was disrupted"
	case l.grant.Unrenewed:
		return ""
	case from < s.Begun, s.mayBeSlow(from, at), s.hasLagged(op.Process, from, at), s.isSlowForAll(op.Process, from, at):
		return "" // as an unexplainedFailure of its renewals
	}
	return "although nothing was disrupted since it was requested"
}

// isUnexplainedInterruption reports whether a Begin returned that the outcome of an earlier
// attempt is unknown, although no earlier attempt had died, was interrupted, or may have
// begun without a known result.
func (s *summary) isUnexplainedInterruption(op *history.Op) bool {
	key := lockOf(op)
	died := slices.ContainsFunc(s.leases[key], func(l *lease) bool {
		ended := l.end != nil && l.end.Kind != history.Release && l.end.Outcome == history.Done &&
			l.end.Return <= op.Call && s.lossAfter(l.end.Call, key.key) > op.Return
		return !ended && l.grant.Call <= op.Return && l.freeFrom() <= op.Return
	})
	return !died && !slices.ContainsFunc(s.calls[key], func(other *history.Op) bool {
		return other != op && other.Kind == history.Begin && other.Call <= op.Return && isIndeterminate(other)
	})
}

// isKnownDone reports whether the request of a Begin is known to be done: it was committed
// before the call, and that data was not lost.
func (s *summary) isKnownDone(op *history.Op) bool {
	return op.Kind == history.Begin && slices.ContainsFunc(s.calls[lockOf(op)], func(commit *history.Op) bool {
		return commit.Kind == history.Commit && commit.Outcome == history.Done && commit.Return < op.Call &&
			s.lossAfter(commit.Call, op.Key) > op.Return
	})
}

// unexplainedAnswer describes a wrong outcome of a Begin whose request is known to be done.
// A wait that is no longer than a command may take may end without the answer.
func (s *summary) unexplainedAnswer(op *history.Op) string {
	switch op.Outcome {
	case history.Granted, history.Interrupted, history.Busy:
		return "although it was done"
	case history.WaitTimeout, history.Deadline:
		if op.Wait == 0 || op.Wait > s.CommandTimeout {
			if why := s.unexplainedFailure(op); why != "" {
				return "although it was done, and nothing was disrupted"
			}
		}
	}
	return ""
}

// isSealed reports whether a Begin returned that the answer is not stored, for a request
// that a client has sealed.
func (s *summary) isSealed(op *history.Op) bool {
	return op.Outcome == history.Unreplayable && slices.ContainsFunc(s.calls[lockOf(op)], func(seal *history.Op) bool {
		return seal.Kind == history.Seal && seal.Call <= op.Return
	})
}

// wrongPayloads finds calls that were refused for another payload although they had the
// same, and calls that got the answer to another payload.
//
// If the record was lost, the other payload may have become the payload of the key.
func wrongPayloads(s *summary) (found []Violation) {
	for i := range s.Ops {
		switch op := &s.Ops[i]; {
		case op.Outcome == history.Mismatch && !op.Other && !s.mayHaveOtherPayload(op):
			found = append(found, Violation{Check: checkOutcomes, Text: callName(op) + ", was refused for another payload although it had the same"})
		case op.Other && (op.Outcome == history.Replayed || op.Outcome == history.Unreplayable) && !s.mayHaveOtherPayload(op):
			found = append(found, Violation{Check: checkOutcomes, Text: fmt.Sprintf("%s, with another payload, was %s", callName(op), op.Outcome)})
		}
	}
	return found
}

// mayHaveOtherPayload reports whether a Begin with another payload may have begun an
// attempt before a call returned.
func (s *summary) mayHaveOtherPayload(op *history.Op) bool {
	return slices.ContainsFunc(s.calls[lockOf(op)], func(other *history.Op) bool {
		return other != op && other.Other && other.Call <= op.Return && (other.Outcome == history.Granted || isIndeterminate(other))
	})
}
