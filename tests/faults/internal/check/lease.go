package check

import "github.com/reqlock/reqlock/tests/faults/internal/history"

// A lease is what is known of one that was granted.
type lease struct {
	name  string
	lock  lock
	grant *history.Op
	// asked is the first call of its episode: what was passed on within a
	// process is as old in Redis as the first of those who had it.
	asked int64
	// lost is when a loss of data begins that was not over when it was asked
	// for. Beyond that it is a ghost: its holder believes in it, and perhaps
	// nobody else.
	lost int64
	// known is the latest validity that its holder is known to have seen. The
	// server keeps the key for longer, unless it is told to free it.
	known int64
	// final says that the holder has told of its validity when it ended: what
	// is known is not less than what it relied on.
	final   bool
	extends []*history.Op
	end     *history.Op // the first Release, Commit or Abort, if any
	told    int64       // when its context had ended; never if that is not known
	// withdrawn says that its context ended since the one that it was asked for with
	// had ended.
	withdrawn bool
}

// ghostly reports whether it was granted when a loss of data had begun that may
// have made it a ghost.
func (l *lease) ghostly() bool { return l.grant.Return >= l.lost }

// ended reports whether it is certain that it was its end that freed the key:
// that was done while it was valid, and Redis was there to keep it.
func (l *lease) ended() bool {
	return l.end != nil && l.end.Outcome == history.Done && l.end.Return < min(l.known, l.lost)
}

// free returns the earliest moment at which the key can be free without it
// having ended for certain: when it expires, or is lost, or is freed by a call
// whose effect is not known. An attempt that was interrupted has not ended.
func (l *lease) free() int64 {
	free := min(l.known, l.lost)
	interrupted := l.end != nil && l.lock.attempt && l.end.Kind == history.Release
	if l.end != nil && (interrupted || !l.ended()) {
		free = min(free, l.end.Call)
	}
	return free
}

// believed returns until when the holder of a lease relied on it, and not
// wrongly: not as a ghost.
func (s *story) believed(l *lease) int64 {
	until := min(s.Ended, s.killed(l.grant.Process), l.lost)
	switch {
	case l.end != nil && l.end.Believed != 0:
		return min(until, l.end.Believed)
	case l.end != nil:
		until = min(until, l.end.Call)
	}
	until = min(until, l.told)
	if l.final {
		return min(until, l.known)
	}
	// Nobody told when its validity ended, as renewals go on unseen. But one
	// that stood still knows when it went on.
	if since, did := s.stood(l.grant.Process, l.grant.Return, until); did {
		until = min(until, max(l.known, since))
	}
	return until
}
