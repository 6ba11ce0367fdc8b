package validate

import (
	"fmt"
	"slices"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// attemptHistories finds the idempotency keys whose calls no single server could have
// answered in any order. The record of a request is an attemptState: the request has one
// answer, all later calls return that answer, and no attempt runs beside another one or
// after the answer. That attempts do not overlap is also checked by overlappingHolders.
//
// As in lockHistories, unknown events are properties of known ones: an attempt may be
// committed, aborted or dead from some time on. A Begin without a known result may have
// begun an attempt.
//
// A loss of data ends an epoch. After it the state of the record is unknown. Calls that
// overlap a loss are omitted, and so are stale attempts, whose answers may be stored later.
func attemptHistories(s *summary) (found []Violation) {
	for _, key := range s.locks {
		if !key.attempt {
			continue
		}
		found = append(found, unknownAnswers(s, key)...)
		found = append(found, besideOpenCommits(s, key)...)
		found = append(found, linearize(s, checkAttempts, key, attemptModel(), s.attemptSteps(key))...)
	}
	return found
}

// unknownAnswers finds the replays of an answer that no earlier commit has stored.
func unknownAnswers(s *summary, key lock) (found []Violation) {
	for _, op := range s.calls[key] {
		if op.Outcome != history.Replayed {
			continue
		}
		given := slices.ContainsFunc(s.calls[key], func(commit *history.Op) bool {
			return commit.Kind == history.Commit && commit.Record == op.Record && commit.Call <= op.Return
		})
		if !given {
			found = append(found, Violation{Check: checkAttempts, Text: callName(op) + ", returned an answer that no commit had stored: " + op.Record})
		}
	}
	return found
}

// attemptSteps returns the known steps of an idempotency key.
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
		case history.Replayed, history.Unreplayable: // a sealed answer is ""
			if s.isOutsideLosses(op) && (op.Outcome == history.Replayed || s.isSealed(op)) && !s.isOfOpenCommit(key, op) {
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

// endSteps returns the known end of an attempt.
func (s *summary) endSteps(l *lease) []*step {
	if l.end == nil || l.end.Outcome != history.Done || l.end.Return >= l.lossFrom {
		return nil
	}
	is := committing
	switch l.end.Kind {
	case history.Abort:
		is = aborting
	case history.Release: // the attempt died: see lease.freeFrom
		return nil
	}
	return []*step{{op: l.end, kind: is, lease: l.name, epoch: s.epoch(l.end)}}
}

// pendingEnd returns the end of an attempt of one of these kinds, if its effect is unknown.
func (l *lease) pendingEnd(kinds ...history.Kind) pendingEnd {
	if l.end == nil || !slices.Contains(kinds, l.end.Kind) || l.end.Outcome == history.Lost || l.end.Outcome == history.Done && l.end.Return < l.lossFrom {
		return pendingEnd{}
	}
	return pendingEnd{from: l.end.Call, record: l.end.Record}
}

// indeterminateBegins returns the number of other Begins that were called before one
// returned, and that may have begun an attempt: their result is unknown, or their attempt
// is stale.
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

// mayBeStaleAnswer reports whether an answer may come from a stale attempt.
func (s *summary) mayBeStaleAnswer(key lock, replay *history.Op) bool {
	return slices.ContainsFunc(s.leases[key], func(l *lease) bool {
		end := l.end
		return end != nil && (end.Kind == history.Commit || end.Kind == history.Seal) && end.Record == replay.Record &&
			end.Call <= replay.Return && s.returnedAt(end) >= l.lossFrom
	})
}

// epoch returns the number of losses of the key that had ended before a call.
func (s *summary) epoch(op *history.Op) (n int) {
	for _, loss := range s.losses {
		if loss.To <= op.Call && concernsKey(loss, op.Key) {
			n++
		}
	}
	return n
}

// isOutsideLosses reports whether no loss of the key overlaps a call.
func (s *summary) isOutsideLosses(op *history.Op) bool {
	return op.Return < s.lossAfter(op.Call, op.Key)
}

// commitTimeout is after how long a commit becomes an open commit at the earliest, unless the server
// refuses it. The caller may have left earlier.
const commitTimeout = 2 * time.Second

// isOpenCommit reports whether an operation is a commit or a seal that has failed, and goes on.
func isOpenCommit(op *history.Op) bool {
	return (op.Kind == history.Commit || op.Kind == history.Seal) && op.Outcome == history.Unavailable
}

// isOfOpenCommit reports whether a Begin may have got the answer of an open commit of its own
// process. The server need not have the answer yet, so the call says nothing about the record.
func (s *summary) isOfOpenCommit(key lock, begin *history.Op) bool {
	return slices.ContainsFunc(s.calls[key], func(commit *history.Op) bool {
		return commit.Record == begin.Record && s.mayBeOpen(commit, begin)
	})
}

// isBesideOpenCommit reports whether a Begin may have been refused because its process has an open
// commit of the same key.
func (s *summary) isBesideOpenCommit(begin *history.Op) bool {
	return begin.Kind == history.Begin && slices.ContainsFunc(s.calls[lockOf(begin)], func(commit *history.Op) bool {
		return s.mayBeOpen(commit, begin)
	})
}

// mayBeOpen reports whether an operation may be an open commit of the process of a Begin. If its caller
// left, the commit is open after commitTimeout, or since the server refused it during a disruption.
func (s *summary) mayBeOpen(commit, begin *history.Op) bool {
	if commit.Process != begin.Process || commit.Call > begin.Return || commit.Kind != history.Commit && commit.Kind != history.Seal {
		return false
	}
	isLate := begin.Return-commit.Call >= commitTimeout.Nanoseconds()
	mayBeRefused := s.isDisrupted(commit.Call, min(begin.Return, commit.Return+2*s.CommandTimeout), isDeliberate)
	return isOpenCommit(commit) || commit.Outcome == history.Deadline && (isLate || mayBeRefused)
}

// besideOpenCommits finds attempts that began in a process with an open commit of the same
// request, whatever data the server has lost. Another attempt that begins meanwhile ends the open
// commit: one of another process, or one for which this process had asked before the commit.
func besideOpenCommits(s *summary, key lock) (found []Violation) {
	for _, commit := range s.calls[key] {
		if !isOpenCommit(commit) {
			continue
		}
		ends := func(begin *history.Op) bool {
			return begin.Kind == history.Begin && begin.Lease != commit.Lease && (begin.Outcome == history.Granted || isIndeterminate(begin)) &&
				(begin.Return == 0 || begin.Return >= commit.Call) && (begin.Process != commit.Process || begin.Call <= commit.Return)
		}
		for _, begin := range s.calls[key] {
			if begin.Kind != history.Begin || begin.Process != commit.Process || begin.Outcome != history.Granted || begin.Call <= commit.Return {
				continue
			}
			if !slices.ContainsFunc(s.calls[key], func(other *history.Op) bool { return ends(other) && other.Call <= begin.Return }) {
				found = append(found, Violation{Check: checkAttempts, Text: callName(begin) + ", began beside an open commit of its process: " + callName(commit)})
			}
		}
	}
	return found
}

// forgottenEffects finds requests that took effect, were not aborted, and run again as if
// they had not. The Number of a later attempt must be greater than 1.
func forgottenEffects(s *summary) (found []Violation) {
	forgotten := map[string]bool{} // leases that were reported already
	for i := range s.Effects {
		effect := &s.Effects[i]
		l := s.byName[effect.Lease]
		if l == nil || !l.lock.attempt || l.lock.key != effect.Key {
			found = append(found, Violation{Check: checkEffects, Text: fmt.Sprintf(
				"client %d of process %d charged for %s at %d without an attempt that must run", effect.Client, effect.Process, effect.Key, effect.At)})
			continue
		}
		if again := s.rerunAsFirst(l); again != nil && !forgotten[l.name] {
			forgotten[l.name] = true
			found = append(found, Violation{Check: checkEffects, Text: fmt.Sprintf(
				"%s took effect at %d and was not aborted, and %s ran as the first attempt", callName(l.grant), effect.At, callName(again))})
		}
	}
	return found
}

// rerunAsFirst returns a later attempt with the number 1, or nil.
func (s *summary) rerunAsFirst(l *lease) *history.Op {
	if l.end != nil && l.end.Kind == history.Abort {
		return nil
	}
	for _, later := range s.leases[l.lock] {
		if later.grant.Call > l.grant.Return && later.grant.Return < l.lossFrom && later.grant.Number == 1 {
			return later.grant
		}
	}
	return nil
}
