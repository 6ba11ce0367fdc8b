package validate

import "github.com/reqlock/reqlock/tests/faults/internal/history"

// A lease is what is known of one that was granted.
type lease struct {
	name  string
	lock  lock
	grant *history.Op
	// requested is the first call of its episode: what was passed on within a
	// process is as old in Redis as the first of those who had it.
	requested int64
	// lossFrom is when a loss of data begins that was not over when it was asked
	// for. Beyond that it is a ghost: its holder believes in it, and perhaps
	// nobody else.
	lossFrom int64
	// knownValidity is the latest validity that its holder is known to have seen. The
	// server keeps the key for longer, unless it is told to free it.
	knownValidity int64
	// isValidityFinal says that the holder has told of its validity when it ended: what
	// is known is not less than what it relied on.
	isValidityFinal bool
	extends         []*history.Op
	end             *history.Op // the first Release, Commit or Abort, if any
	contextEnded    int64       // when its context had ended; never if that is not known
	// callerEnded says that its context ended since the one that it was asked for with
	// had ended.
	callerEnded bool
}

// isStale reports whether it was granted when a loss of data had begun that may
// have made it a ghost.
func (l *lease) isStale() bool { return l.grant.Return >= l.lossFrom }

// isEnded reports whether it is certain that it was its end that freed the key:
// that was done while it was valid, and Redis was there to keep it.
func (l *lease) isEnded() bool {
	return l.end != nil && l.end.Outcome == history.Done && l.end.Return < min(l.knownValidity, l.lossFrom)
}

// freeFrom returns the earliest moment at which the key can be free without it
// having ended for certain: when it expires, or is lost, or is freed by a call
// whose effect is not known. An attempt that was interrupted has not ended.
func (l *lease) freeFrom() int64 {
	free := min(l.knownValidity, l.lossFrom)
	interrupted := l.end != nil && l.lock.attempt && l.end.Kind == history.Release
	if l.end != nil && (interrupted || !l.isEnded()) {
		free = min(free, l.end.Call)
	}
	return free
}

// reliedUntil returns until when the holder of a lease relied on it, and not
// wrongly: not as a ghost.
func (s *summary) reliedUntil(l *lease) int64 {
	until := min(s.Ended, s.killedAt(l.grant.Process), l.lossFrom)
	switch {
	case l.end != nil && l.end.ReliedUntil != 0:
		return min(until, l.end.ReliedUntil)
	case l.end != nil:
		until = min(until, l.end.Call)
	}
	until = min(until, l.contextEnded)
	if l.isValidityFinal {
		return min(until, l.knownValidity)
	}
	// Nobody told when its validity ended, as renewals go on unseen. But one
	// that stood still knows when it went on.
	if since, did := s.pausedSince(l.grant.Process, l.grant.Return, until); did {
		until = min(until, max(l.knownValidity, since))
	}
	return until
}
