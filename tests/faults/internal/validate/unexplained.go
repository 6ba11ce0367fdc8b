package validate

import (
	"fmt"
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
	if op.Call < s.Begun || s.mayBeDisruptedBy(op.Process, op.Call, op.Return, isHarmful) || s.mayBeSlow(op.Call, op.Return) || s.hasLagged(op) {
		return ""
	}
	return "although nothing was disrupted"
}
