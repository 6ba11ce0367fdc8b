package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/reqlock/reqlock/faults/internal/history"
)

// aftermath is for how long after a trouble calls may still suffer from it:
// connections are made again, a failover is heard of, a command times out.
const aftermath = 3 * time.Second

// headStart is by how much the time that a caller gives its context may begin
// before its call is written down.
const headStart = 50 * time.Millisecond

// refusals finds the outcomes that nothing explains: those that no call should
// have, and those that only a trouble brings about when there was none.
func refusals(s *story) (found []Finding) {
	for i := range s.Ops {
		op := &s.Ops[i]
		if why := s.unexplained(op); why != "" {
			found = append(found, Finding{Check: "errors", Text: fmt.Sprintf(
				"%s, was %s %s: %q", name(op), op.Outcome, why, op.Error)})
		}
	}
	return found
}

func (s *story) unexplained(op *history.Op) string {
	switch op.Outcome {
	case history.Failed:
		return "in a way that no call should"
	case history.Unreplayable:
		return "although each answer is small enough to be kept"
	case history.WaitTimeout:
		if op.Kind == history.Lock && op.Wait == 0 {
			return "although it may wait for ever"
		}
	case history.Deadline:
		asks := op.Kind == history.Lock || op.Kind == history.Try || op.Kind == history.Begin
		if asks && op.Return-op.Call < op.Wait-int64(headStart) || asks && op.Wait == 0 {
			return "although its context had not ended"
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
// their connections, all at once; and where the machine has stalled once, it has
// also been slow at other times, unseen.
func (s *story) untroubled(op *history.Op) string {
	if op.Call < s.Begun || s.troubled(0, never, func(t history.Trouble) bool { return strings.HasPrefix(t.Name, Stalled) }) {
		return ""
	}
	from := op.Call - int64(aftermath)
	if s.troubled(from, op.Return, func(history.Trouble) bool { return true }) {
		return ""
	}
	for _, death := range s.deaths[op.Process] {
		to := death.To
		if to != never {
			to += int64(aftermath)
		}
		if death.From <= op.Return && to >= op.Call {
			return ""
		}
	}
	return "although nothing was broken"
}
