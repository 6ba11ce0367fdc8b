package engine

import (
	"math/rand/v2"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// safetyTime is how long a waiter relies on being told: then it looks again,
// since its hint may be lost, its holder dead, its place in line forgotten.
const safetyTime = time.Second

// The pauses after a fault grow from the shortest to the longest.
const (
	shortestPause = 5 * time.Millisecond
	longestPause  = 250 * time.Millisecond
)

// silentPauses are those between two looks at a key whose end nobody tells, in
// their order; the last one stays.
var silentPauses = [...]time.Duration{50 * time.Millisecond, 100 * time.Millisecond, longestPause}

// mostSplits is how often a vote may be split before those who may not wait are
// told that the key is busy.
const mostSplits = 4

// patience is how often in a row a line has paused for the same reason.
type patience struct{ faults, silences, splits int }

// afterSplit returns how long to pause after a split vote: any part of a span that
// doubles, so that those who have split it come back one after the other.
func (p *patience) afterSplit() time.Duration {
	p.splits++
	return rand.N(min(shortestPause<<min(p.splits, 6), longestPause)) //nolint:gosec // jitter needs no secret randomness
}

// after returns how long to pause after this answer, or fault. deaf is true
// where the server does not know yet that this process listens.
func (p *patience) after(answer store.Answer, err error, deaf bool) time.Duration {
	if err != nil || answer.Granted { // too late to be of use
		p.faults++
		return backoff(p.faults - 1)
	}
	p.faults, p.splits = 0, 0
	if !answer.Silent && !deaf {
		p.silences = 0
		return jitter(lesser(answer.Remaining, safetyTime))
	}
	p.silences++
	return lesser(answer.Remaining, silentPauses[min(p.silences, len(silentPauses))-1])
}

// backoff returns a random part, at least half, of a span that doubles with
// each try from the shortest to the longest pause.
func backoff(tries int) time.Duration {
	span := longestPause
	if tries < 6 { // 5 ms doubled six times is over the longest
		span = min(shortestPause<<tries, longestPause)
	}
	return span/2 + rand.N(span/2) //nolint:gosec // jitter needs no secret randomness
}

// jitter adds up to a quarter, so that the waiters of many processes do not
// look all at once.
func jitter(d time.Duration) time.Duration {
	return d + rand.N(d/4+1) //nolint:gosec // jitter needs no secret randomness
}

// lesser returns the pause, but not one past the end of the key in the way.
func lesser(remaining, pause time.Duration) time.Duration {
	if remaining > 0 && remaining < pause {
		return remaining
	}
	return pause
}

// pause asks again after d, or when a hint or a caller that leaves wakes the
// line. It asks at once if that has happened already, if nobody waits any more,
// or if somebody wants an answer at once.
func (l *line) pause(d time.Duration) {
	if d == 0 || l.tries > 0 {
		l.ask()
		return
	}
	l.sleep(d)
}

// sleep is pause for those, too, who want an answer at once.
func (l *line) sleep(d time.Duration) {
	if l.again || l.first == nil {
		l.ask()
		return
	}
	l.engine.work.Add()
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		defer l.engine.work.Done()
		l.shard.mu.Lock()
		defer l.shard.mu.Unlock()
		if l.timer == timer {
			l.timer = nil
			l.ask()
		}
	})
	l.timer = timer
}

// wake ends the line's pause, or keeps it from the next one.
func (l *line) wake() {
	l.again = true
	if l.timer == nil {
		return
	}
	if l.timer.Stop() {
		l.engine.work.Done()
	}
	l.timer = nil
	l.ask()
}
