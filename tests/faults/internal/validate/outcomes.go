package validate

import (
	"slices"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// unexplainedLoss returns what is wrong with the loss of a lease that nothing brought
// about: nothing was broken since it was asked for, and neither its holder had
// ended it, nor had the context that it was asked for with ended.
//
// Its validity at the grant is the least for which Redis keeps it. Before that it
// is no excuse that the machine was slow.
func (s *summary) unexplainedLoss(op *history.Op) string {
	l := s.byName[op.Lease]
	at := max(op.Call, op.Return)
	switch {
	case l.callerEnded, l.lossFrom <= at, s.mayBeDisrupted(op.Process, l.grant.Call, at):
		return ""
	case l.end != nil && l.end != op && l.end.Call <= at:
		return "" // of its own doing
	case at < l.grant.ValidUntil-int64(clockSkew):
		return "although it was valid for longer, and nothing was broken"
	case l.grant.Unrenewed:
		return ""
	case s.mayBeSlow(l.grant.Call, at):
		return ""
	}
	return "although nothing was broken while it lasted"
}

// isUnexplainedInterruption reports whether nothing explains that a Begin was told of an attempt
// whose outcome is not known: no attempt before it had died, or was left, or may
// have been begun unheard.
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

// isKnownDone reports whether the request of a Begin is known to be done: it was
// committed before the call, and that was not lost again.
func (s *summary) isKnownDone(op *history.Op) bool {
	return op.Kind == history.Begin && slices.ContainsFunc(s.calls[lockOf(op)], func(commit *history.Op) bool {
		return commit.Kind == history.Commit && commit.Outcome == history.Done && commit.Return < op.Call &&
			s.lossAfter(commit.Call, op.Key) > op.Return
	})
}

// unexplainedAnswer returns what is wrong with the outcome of a Begin of a request that
// is known to be done. Whoever waits too shortly to hear the answer gets none.
func (s *summary) unexplainedAnswer(op *history.Op) string {
	switch op.Outcome {
	case history.Granted, history.Interrupted, history.Busy:
		return "although it was done"
	case history.WaitTimeout, history.Deadline:
		if op.Wait == 0 || op.Wait > int64(clockSkew) {
			if why := s.unexplainedFailure(op); why != "" {
				return "although it was done, and nothing was broken"
			}
		}
	}
	return ""
}
