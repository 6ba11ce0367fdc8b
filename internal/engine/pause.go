package engine

import (
	"math/rand/v2"
	"time"
)

// The pauses between two questions of one line.
const (
	shortestPause = 5 * time.Millisecond
	longestPause  = 250 * time.Millisecond
)

// pauseOf returns how long to pause after the given number of earlier tries: a
// random part, at least half, of a span that doubles from the shortest to the
// longest pause; but not past the end of the key that is in the way.
func pauseOf(tries int, rest time.Duration) time.Duration {
	span := longestPause
	if tries < 6 { // 5 ms doubled six times is over the longest
		span = min(shortestPause<<tries, longestPause)
	}
	pause := span/2 + rand.N(span/2) //nolint:gosec // jitter needs no secret randomness
	if rest > 0 && rest < pause {
		return rest
	}
	return pause
}

// pause waits, until the alarm cuts it short. It does not wait if nobody else
// does, or if somebody wants an answer and not the next poll.
func (l *line) pause(d time.Duration) {
	l.shard.mu.Lock()
	if l.first == nil || l.tries > 0 {
		l.shard.mu.Unlock()
		return
	}
	alarm := make(chan struct{})
	l.alarm = alarm
	l.shard.mu.Unlock()

	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		l.shard.mu.Lock()
		if l.alarm == alarm {
			l.alarm = nil
		}
		l.shard.mu.Unlock()
	case <-alarm:
	}
}
