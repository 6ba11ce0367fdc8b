package check

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// headStart is by how much a wait may be over sooner than its caller has written down.
const headStart = 50 * time.Millisecond

// refusals finds the outcomes that nothing explains: those that no call should
// have, and those that only a trouble brings about when there was none.
func refusals(s *story) (found []Finding) {
	for i := range s.Ops {
		op := &s.Ops[i]
		if why := s.unexplained(op); why != "" && !s.sealed(op) {
			found = append(found, Finding{Check: "errors", Text: fmt.Sprintf(
				"%s, was %s %s: %q", name(op), op.Outcome, why, op.Error)})
		}
	}
	return found
}

// unexplained returns what is wrong with the outcome of a call, and "" if nothing
// is.
func (s *story) unexplained(op *history.Op) string {
	if s.answered(op) {
		if why := s.unanswered(op); why != "" {
			return why
		}
	}
	waits := op.Kind == history.Lock || op.Kind == history.Begin
	early := op.Wait == 0 || op.Return-op.Call < op.Wait-int64(headStart)
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
		return s.unfounded(op)
	case history.Interrupted:
		if s.groundless(op) {
			return "although no attempt had died"
		}
	case history.Unavailable:
		if op.Wait != 0 && op.Return-op.Call >= op.Wait {
			return "" // its wait may be over before anybody can answer
		}
		return s.untroubled(op)
	}
	return ""
}

// untroubled says that nothing was broken while a call lasted, nor just before,
// and nothing where there was something. Before the beginning the clients set up
// their connections, all at once.
func (s *story) untroubled(op *history.Op) string {
	hurts := func(t history.Trouble) bool { return !unnoticed(t, op) }
	if op.Call < s.Begun || s.brokenBy(op.Process, op.Call, op.Return, hurts) || s.slow(op.Call, op.Return) || s.lagged(op) {
		return ""
	}
	return "although nothing was broken"
}
