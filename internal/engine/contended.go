package engine

import "time"

// contendedFor is how long a shard knows that other processes waited for a key, and maxContended
// how many such keys it knows.
const (
	contendedFor = recheckInterval
	maxContended = 16
)

// noteContended notes whether the last release of a key without callers has handed the key to
// another process. If it has, the next caller of this process most likely has to wait. So its
// queue does not try to take the key first: a process with one caller would send one more command
// for each turn.
func (s *shard) noteContended(key string, handed bool) {
	if !handed {
		delete(s.contended, key)
		return
	}
	if s.contended == nil {
		s.contended = make(map[string]time.Time)
	}
	if len(s.contended) == maxContended {
		clear(s.contended) // the busy ones come back
	}
	s.contended[key] = time.Now()
}

// expectsToWait reports whether another process got the key not long ago, so that the first caller
// of an idle queue most likely has to wait. Then the queue listens for hints. Until the server has
// confirmed that, expectsToWait reports false, because a token joins only once its process listens,
// and the key may be free.
func (l *waitlist) expectsToWait(r *Request) bool {
	at, found := l.root.shard.contended[l.root.key]
	if !found || r.Wait == 0 || r.Attempt != nil || !l.isRoot() || l.root.engine.ballots || time.Since(at) > contendedFor {
		return false
	}
	l.listen()
	return l.isListening()
}
