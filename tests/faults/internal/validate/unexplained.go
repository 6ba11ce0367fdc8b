package validate

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// clockSkew is by how much a wait may be over sooner than its caller has written down.
const clockSkew = 50 * time.Millisecond

// unexplainedOutcomes finds the outcomes that nothing explains: those that no call should
// have, and those that only a trouble brings about when there was none.
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

// unexplainedOutcome returns what is wrong with the outcome of a call, and "" if nothing
// is.
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
		return "in a way that no call should"
	case history.Unreplayable:
		return "although nobody has sealed it"
	case history.Busy, history.WaitTimeout:
		if waits && early {
			return "although it may wait for longer"
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
			return "" // its wait may be over before anybody can answer
		}
		return s.unexplainedFailure(op)
	}
	return ""
}

// unexplainedFailure says that nothing was broken while a call lasted, nor just before,
// and nothing where there was something. Before the beginning the clients set up
// their connections, all at once.
func (s *summary) unexplainedFailure(op *history.Op) string {
	hurts := func(t history.Disruption) bool { return !isHarmless(t, op) }
	if op.Call < s.Begun || s.mayBeDisruptedBy(op.Process, op.Call, op.Return, hurts) || s.mayBeSlow(op.Call, op.Return) || s.hasLagged(op) {
		return ""
	}
	return "although nothing was broken"
}
