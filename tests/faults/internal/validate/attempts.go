package validate

import (
	"slices"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// attemptHistories finds the idempotency keys of which no order of the calls tells how
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
func attemptHistories(s *summary) (found []Violation) {
	for _, key := range s.locks {
		if !key.attempt {
			continue
		}
		found = append(found, unknownAnswers(s, key)...)
		found = append(found, linearize(s, checkAttempts, key, attemptModel(), s.attemptSteps(key))...)
	}
	return found
}

// unknownAnswers finds the replays of an answer that no commit had been given.
func unknownAnswers(s *summary, key lock) (found []Violation) {
	for _, op := range s.calls[key] {
		if op.Outcome != history.Replayed {
			continue
		}
		given := slices.ContainsFunc(s.calls[key], func(commit *history.Op) bool {
			return commit.Kind == history.Commit && commit.Record == op.Record && commit.Call <= op.Return
		})
		if !given {
			found = append(found, Violation{Check: checkAttempts, Text: callName(op) + ", got an answer that nobody had given: " + op.Record})
		}
	}
	return found
}

// attemptSteps returns what is known to have happened to an idempotency key.
func (s *summary) attemptSteps(key lock) (steps []*step) {
	for _, op := range s.calls[key] {
		if op.Kind != history.Begin {
			continue
		}
		one := &step{op: op, epoch: s.epoch(op), indeterminate: s.indeterminateBegins(key, op)}
		switch op.Outcome {
		case history.Granted:
			l := s.byName[op.Lease]
			if !l.isStale() {
				one.kind, one.lease, one.number, one.free = granting, l.name, op.Number, l.freeFrom()
				one.commit, one.abort = l.pendingEnd(history.Commit, history.Seal), l.pendingEnd(history.Abort)
				steps = append(steps, one)
				steps = append(steps, s.endSteps(l)...)
			}
		case history.Replayed, history.Unreplayable: // the answer of what is sealed is ""
			if s.isOutsideLosses(op) && (op.Outcome == history.Replayed || s.isSealed(op)) {
				one.kind, one.mayBeStale = replaying, s.mayBeStaleAnswer(key, op)
				steps = append(steps, one)
			}
		case history.Interrupted:
			if s.isOutsideLosses(op) {
				one.kind = interrupted
				steps = append(steps, one)
			}
		}
	}
	return steps
}

// endSteps returns how an attempt ended, if that is known.
func (s *summary) endSteps(l *lease) []*step {
	if l.end == nil || l.end.Outcome != history.Done || l.end.Return >= l.lossFrom {
		return nil
	}
	is := committing
	switch l.end.Kind {
	case history.Abort:
		is = aborting
	case history.Release: // it died: see lease.free
		return nil
	}
	return []*step{{op: l.end, kind: is, lease: l.name, epoch: s.epoch(l.end)}}
}

// pendingEnd returns whether an attempt may have been ended so, unheard.
func (l *lease) pendingEnd(kinds ...history.Kind) pendingEnd {
	if l.end == nil || !slices.Contains(kinds, l.end.Kind) || l.end.Outcome == history.Lost || l.end.Outcome == history.Done && l.end.Return < l.lossFrom {
		return pendingEnd{}
	}
	return pendingEnd{from: l.end.Call, record: l.end.Record}
}

// indeterminateBegins returns how many calls to begin, that were made before another one
// returned, may have begun an attempt without being heard of, or as ghosts.
func (s *summary) indeterminateBegins(key lock, than *history.Op) (n int) {
	for _, op := range s.calls[key] {
		if op.Kind != history.Begin || op == than || op.Call > than.Return {
			continue
		}
		switch op.Outcome {
		case history.None, history.Unavailable, history.Deadline, history.WaitTimeout, history.Failed:
			n++
		case history.Granted:
			if s.byName[op.Lease].isStale() {
				n++
			}
		}
	}
	return n
}

// mayBeStaleAnswer reports whether an answer may be that of a ghost.
func (s *summary) mayBeStaleAnswer(key lock, replay *history.Op) bool {
	return slices.ContainsFunc(s.leases[key], func(l *lease) bool {
		end := l.end
		return end != nil && (end.Kind == history.Commit || end.Kind == history.Seal) && end.Record == replay.Record &&
			end.Call <= replay.Return && s.returnedAt(end) >= l.lossFrom
	})
}

// epoch returns how many losses of its key were over when a call was made.
func (s *summary) epoch(op *history.Op) (n int) {
	for _, loss := range s.losses {
		if loss.To <= op.Call && concernsKey(loss, op.Key) {
			n++
		}
	}
	return n
}

// isOutsideLosses reports whether no loss of its key was under way while a call lasted.
func (s *summary) isOutsideLosses(op *history.Op) bool {
	return op.Return < s.lossAfter(op.Call, op.Key)
}
