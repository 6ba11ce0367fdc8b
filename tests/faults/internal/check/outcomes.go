package check

import (
	"slices"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// unfounded returns what is wrong with the loss of a lease that nothing brought
// about: nothing was broken since it was asked for, and neither its holder had
// ended it, nor had the context that it was asked for with ended.
//
// Its validity at the grant is the least for which Redis keeps it. Before that it
// is no excuse that the machine was slow.
func (s *story) unfounded(op *history.Op) string {
	l := s.named[op.Lease]
	at := max(op.Call, op.Return)
	switch {
	case l.withdrawn, l.lost <= at, s.broken(op.Process, l.grant.Call, at):
		return ""
	case l.end != nil && l.end != op && l.end.Call <= at:
		return "" // of its own doing
	case at < l.grant.ValidUntil-int64(headStart):
		return "although it was valid for longer, and nothing was broken"
	case l.grant.Unrenewed:
		return ""
	case s.slow(l.grant.Call, at):
		return ""
	}
	return "although nothing was broken while it lasted"
}

// groundless reports whether nothing explains that a Begin was told of an attempt
// whose outcome is not known: no attempt before it had died, or was left, or may
// have been begun unheard.
func (s *story) groundless(op *history.Op) bool {
	key := lockOf(op)
	died := slices.ContainsFunc(s.leases[key], func(l *lease) bool {
		ended := l.end != nil && l.end.Kind != history.Release && l.end.Outcome == history.Done &&
			l.end.Return <= op.Call && s.lossAfter(l.end.Call, key.key) > op.Return
		return !ended && l.grant.Call <= op.Return && l.free() <= op.Return
	})
	return !died && !slices.ContainsFunc(s.calls[key], func(other *history.Op) bool {
		return other != op && other.Kind == history.Begin && other.Call <= op.Return && unheard(other)
	})
}

// answered reports whether the request of a Begin is known to be done: it was
// committed before the call, and that was not lost again.
func (s *story) answered(op *history.Op) bool {
	return op.Kind == history.Begin && slices.ContainsFunc(s.calls[lockOf(op)], func(commit *history.Op) bool {
		return commit.Kind == history.Commit && commit.Outcome == history.Done && commit.Return < op.Call &&
			s.lossAfter(commit.Call, op.Key) > op.Return
	})
}

// unanswered returns what is wrong with the outcome of a Begin of a request that
// is known to be done. Whoever waits too shortly to hear the answer gets none.
func (s *story) unanswered(op *history.Op) string {
	switch op.Outcome {
	case history.Granted, history.Interrupted, history.Busy:
		return "although it was done"
	case history.WaitTimeout, history.Deadline:
		if op.Wait == 0 || op.Wait > int64(headStart) {
			if why := s.untroubled(op); why != "" {
				return "although it was done, and nothing was broken"
			}
		}
	}
	return ""
}
