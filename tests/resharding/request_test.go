package resharding

import (
	"fmt"
	"testing"

	"github.com/reqlock/reqlock/tests/internal/history"
)

// requests returns what is wrong with the idempotent requests of a history, none of which may run
// twice. The holders of a lock follow each other, so the order of their calls is that of the writes.
func requests(h history.History) (violations []string) {
	all := map[string]*history.Request{}
	uncertain := map[string]bool{} // the answer of the attempt may not be stored
	for _, op := range h.Ops {
		if op.Kind != history.Begin && op.Kind != history.Commit {
			continue
		}
		if all[op.Key] == nil {
			all[op.Key] = &history.Request{}
		}
		q := all[op.Key]
		switch {
		case op.Kind == history.Commit:
			q.Writes = append(q.Writes, op)
			uncertain[op.Key] = uncertain[op.Key] || op.Outcome != history.Done
			continue
		case op.Outcome == history.Granted:
			q.Writes = append(q.Writes, op)
		}
		q.Answers = append(q.Answers, op)
	}
	for _, effect := range h.Effects {
		all[effect.Key].Effects = append(all[effect.Key].Effects, effect)
	}
	for key, q := range all {
		for _, violation := range q.Violations() {
			violations = append(violations, key+": "+violation)
		}
		for _, a := range q.Answers {
			if a.Outcome == history.Interrupted && !uncertain[key] {
				violations = append(violations, fmt.Sprintf("%s: process %d got ErrInterrupted, and the commit succeeded", key, a.Process))
			}
		}
	}
	return violations
}

func TestAnInterruptionWithoutCauseIsFound(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[history.Outcome]int{history.Done: 1, history.Unavailable: 0, history.Lost: 0} {
		h := history.History{
			Ops: []history.Op{
				{Kind: history.Begin, Key: "k", Outcome: history.Granted, Lease: "l", Number: 1, Record: "answer"},
				{Kind: history.Commit, Key: "k", Outcome: outcome, Lease: "l", Record: "answer"},
				{Kind: history.Begin, Key: "k", Outcome: history.Interrupted},
				{Kind: history.Lock, Key: "other", Outcome: history.Granted},
			},
			Effects: []history.Effect{{Key: "k", Lease: "l", Number: 1}},
		}
		if found := requests(h); len(found) != want {
			t.Errorf("commit %s: found %q", outcome, found)
		}
	}
}
