package validate

import (
	"slices"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// unexplainedLoss describes the loss of a lease without a cause: nothing was disrupted
// since the lease was requested, the holder had not ended it, and the caller's context had
// not ended.
//
// Redis keeps the key at least for the validity at the grant. Within that time, a slow
// machine is no cause.
func (s *summary) unexplainedLoss(op *history.Op) string {
	l := s.byName[op.Lease]
	at := max(op.Call, op.Return)
	switch {
	case l.callerEnded, l.lossFrom <= at, s.mayBeDisrupted(op.Process, l.grant.Call, at):
		return ""
	case l.end != nil && l.end != op && l.end.Call <= at:
		return "" // the client had ended the lease itself
	case at < l.grant.ValidUntil-int64(clockSkew):
		return "although it was valid for longer, and nothing was disrupted"
	case l.grant.Unrenewed:
		return ""
	case s.mayBeSlow(l.grant.Call, at):
		return ""
	}
	return "although nothing was disrupted since it was requested"
}

// isUnexplainedInterruption reports whether a Begin returned that the outcome of an earlier
// attempt is unknown, although no earlier attempt had died, was interrupted, or may have
// begun without a known result.
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

// isKnownDone reports whether the request of a Begin is known to be done: it was committed
// before the call, and that data was not lost.
func (s *summary) isKnownDone(op *history.Op) bool {
	return op.Kind == history.Begin && slices.ContainsFunc(s.calls[lockOf(op)], func(commit *history.Op) bool {
		return commit.Kind == history.Commit && commit.Outcome == history.Done && commit.Return < op.Call &&
			s.lossAfter(commit.Call, op.Key) > op.Return
	})
}

// unexplainedAnswer describes a wrong outcome of a Begin whose request is known to be done.
// A wait that is no longer than a command may take may end without the answer.
func (s *summary) unexplainedAnswer(op *history.Op) string {
	switch op.Outcome {
	case history.Granted, history.Interrupted, history.Busy:
		return "although it was done"
	case history.WaitTimeout, history.Deadline:
		if op.Wait == 0 || op.Wait > s.commandTimeout() {
			if why := s.unexplainedFailure(op); why != "" {
				return "although it was done, and nothing was disrupted"
			}
		}
	}
	return ""
}
