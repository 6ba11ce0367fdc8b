package validate

import (
	"cmp"
	"math"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// A lease is what is known of a granted lease.
type lease struct {
	name  string
	lock  lock
	grant *history.Op
	ttl   int64 // of the lease, in ns
	// requested is the time of the first call of its episode: leases that are handed off
	// within a process are one lease in Redis.
	requested int64
	// lossFrom is the beginning of the first loss of data that ended after the lease was
	// requested. From then on the lease may be stale: its holder relies on it, and Redis
	// may not have it.
	lossFrom int64
	// knownValidity is the latest validity that the holder is known to have seen. Unless
	// the key is freed, the server keeps it for longer.
	knownValidity int64
	// isValidityFinal is set if the holder reported its validity when it ended: then
	// knownValidity covers the whole time for which it relied on the lease.
	isValidityFinal bool
	extends         []*history.Op
	end             *history.Op // the first Release, Commit, Seal or Abort
	contextEnded    int64       // when its context ended; never if that is unknown
	// callerEnded is set if its context ended because the caller's context had.
	callerEnded bool
}

// capacity returns how many leases of the key may be out together if this one is among
// them. No lease may be out beside an exclusive one.
func capacity(op *history.Op) int {
	switch op.Limit {
	case 0:
		return 1
	case history.Unlimited:
		return math.MaxInt
	default:
		return op.Limit
	}
}

// excludes reports whether two leases may not be out together, whatever else is out.
func excludes(a, b *history.Op) bool { return !a.IsShared() || !b.IsShared() }

// episode returns the name of the lease in Redis, which leases that are handed off share.
func (l *lease) episode() string { return cmp.Or(l.grant.Episode, l.name) }

// isStale reports whether the lease was granted after the beginning of a loss that may have
// removed it.
func (l *lease) isStale() bool { return l.grant.Return >= l.lossFrom }

// isEnded reports whether it is certain that its end freed the key: the end succeeded while
// the lease was valid, and no data was lost.
func (l *lease) isEnded() bool {
	return l.end != nil && l.end.Outcome == history.Done && l.end.Return < min(l.knownValidity, l.lossFrom)
}

// isKept reports whether its end may have left the key locked for the rest of a minimal hold.
func (l *lease) isKept() bool {
	return l.grant.MinHold > 0 && l.isEnded() && l.end.Call < l.grant.Return+l.grant.MinHold
}

// keptUntil returns the earliest time at which the minimal hold of the lease may have ended.
// The hold begins with the grant: after the call, and after the command whose reply granted
// or renewed the lease, from which on the lease was valid for a TTL.
func (l *lease) keptUntil() int64 {
	return max(l.grant.Call, l.grant.ValidUntil-l.ttl) + l.grant.MinHold - int64(clockSkew)
}

// freeFrom returns the earliest time at which the key may be free without a certain end:
// when it expires, is lost, or is freed by a call with an unknown effect. An interrupted
// attempt has no end.
func (l *lease) freeFrom() int64 {
	if l.isKept() {
		return min(l.lossFrom, max(l.end.Call, l.keptUntil()))
	}
	free := min(l.knownValidity, l.lossFrom)
	interrupted := l.end != nil && l.lock.attempt && l.end.Kind == history.Release
	if l.end != nil && (interrupted || !l.isEnded()) {
		free = min(free, l.end.Call)
	}
	return free
}

// reliedUntil returns until when the holder relied on the lease rightly: not while the
// lease was stale.
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
	// The holder did not report its validity, and renewals are not reported. A process that
	// was paused knows when it continued.
	if since, did := s.pausedSince(l.grant.Process, l.grant.Return, until); did {
		until = min(until, max(l.knownValidity, since))
	}
	return until
}
