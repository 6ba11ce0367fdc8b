package check

import (
	"slices"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// attempts finds the idempotency keys of which no order of the calls tells how
// one server could have answered them, whose record of a request is as
// attemptState says: one answer, which all later ones get, and nobody who runs
// beside another or after the answer. That attempts do not overlap is also what
// overlaps finds, by what they believed.
//
// As in server, what is not known is said of what is known: an attempt may be
// committed, aborted, or dead, from some moment on. An unheard Begin may count as
// an attempt.
//
// A loss of data ends an epoch, and the model begins anew from a record of which
// nothing is known. What reaches into a loss is left out, ghosts too, whose
// answers may turn up later.
func attempts(s *story) (found []Finding) {
	for _, key := range s.locks {
		if !key.attempt {
			continue
		}
		found = append(found, answers(s, key)...)
		found = append(found, judge(s, "attempts", key, attemptModel(), s.attemptSteps(key))...)
	}
	return found
}

// answers finds the replays of an answer that no commit had been given.
func answers(s *story, key lock) (found []Finding) {
	for _, op := range s.calls[key] {
		if op.Outcome != history.Replayed {
			continue
		}
		given := slices.ContainsFunc(s.calls[key], func(commit *history.Op) bool {
			return commit.Kind == history.Commit && commit.Record == op.Record && commit.Call <= op.Return
		})
		if !given {
			found = append(found, Finding{Check: "attempts", Text: name(op) + ", got an answer that nobody had given: " + op.Record})
		}
	}
	return found
}

// attemptSteps returns what is known to have happened to an idempotency key.
func (s *story) attemptSteps(key lock) (steps []*step) {
	for _, op := range s.calls[key] {
		if op.Kind != history.Begin {
			continue
		}
		one := &step{op: op, epoch: s.epoch(op), unknown: s.unheard(key, op)}
		switch op.Outcome {
		case history.Granted:
			l := s.named[op.Lease]
			if !l.ghostly() {
				one.is, one.lease, one.number, one.free = granting, l.name, op.Number, l.free()
				one.commit, one.abort = l.pending(history.Commit, history.Seal), l.pending(history.Abort)
				steps = append(steps, one)
				steps = append(steps, s.endSteps(l)...)
			}
		case history.Replayed, history.Unreplayable: // the answer of what is sealed is ""
			if s.outside(op) && (op.Outcome == history.Replayed || s.sealed(op)) {
				one.is, one.ghostly = replaying, s.ghostAnswer(key, op)
				steps = append(steps, one)
			}
		case history.Interrupted:
			if s.outside(op) {
				one.is = interrupted
				steps = append(steps, one)
			}
		}
	}
	return steps
}

// endSteps returns how an attempt ended, if that is known.
func (s *story) endSteps(l *lease) []*step {
	if l.end == nil || l.end.Outcome != history.Done || l.end.Return >= l.lost {
		return nil
	}
	is := committing
	switch l.end.Kind {
	case history.Abort:
		is = aborting
	case history.Release: // it died: see lease.free
		return nil
	}
	return []*step{{op: l.end, is: is, lease: l.name, epoch: s.epoch(l.end)}}
}

// pending returns whether an attempt may have been ended so, unheard.
func (l *lease) pending(kinds ...history.Kind) maybe {
	if l.end == nil || !slices.Contains(kinds, l.end.Kind) || l.end.Outcome == history.Lost || l.end.Outcome == history.Done && l.end.Return < l.lost {
		return maybe{}
	}
	return maybe{from: l.end.Call, record: l.end.Record}
}

// unheard returns how many calls to begin, that were made before another one
// returned, may have begun an attempt without being heard of, or as ghosts.
func (s *story) unheard(key lock, than *history.Op) (n int) {
	for _, op := range s.calls[key] {
		if op.Kind != history.Begin || op == than || op.Call > than.Return {
			continue
		}
		switch op.Outcome {
		case history.None, history.Unavailable, history.Deadline, history.WaitTimeout, history.Failed:
			n++
		case history.Granted:
			if s.named[op.Lease].ghostly() {
				n++
			}
		}
	}
	return n
}

// ghostAnswer reports whether an answer may be that of a ghost.
func (s *story) ghostAnswer(key lock, replay *history.Op) bool {
	return slices.ContainsFunc(s.leases[key], func(l *lease) bool {
		end := l.end
		return end != nil && (end.Kind == history.Commit || end.Kind == history.Seal) && end.Record == replay.Record &&
			end.Call <= replay.Return && s.returned(end) >= l.lost
	})
}

// epoch returns how many losses of its key were over when a call was made.
func (s *story) epoch(op *history.Op) (n int) {
	for _, loss := range s.losses {
		if loss.To <= op.Call && isOf(loss, op.Key) {
			n++
		}
	}
	return n
}

// outside reports whether no loss of its key was under way while a call lasted.
func (s *story) outside(op *history.Op) bool { return op.Return < s.lossAfter(op.Call, op.Key) }
