package resharding

import (
	"fmt"

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
				violations = append(violations, fmt.Sprintf("%s: process %d got ErrOutcomeUnknown, and the commit succeeded", key, a.Process))
			}
		}
	}
	return violations
}
