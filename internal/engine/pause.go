package engine

import (
	"math/rand/v2"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// safetyTime is how long a waiter relies on being told: then it looks again,
// since its hint may be lost, its holder dead, its place in line forgotten.
const recheckInterval = time.Second

// The pauses after a fault grow from the shortest to the longest.
const (
	minPause = 5 * time.Millisecond
	maxPause = 250 * time.Millisecond
)

// silentPauses are those between two looks at a key whose end nobody tells, in
// their order; the last one stays.
var pollPauses = [...]time.Duration{50 * time.Millisecond, 100 * time.Millisecond, maxPause}

// mostSplits is how often a vote may be split before those who may not wait are
// told that the key is busy.
const maxSplits = 4

// patience is how often in a row a line has paused for the same reason.
type pauses struct{ faults, polls, splits int }

// afterSplit returns how long to pause after a split vote: any part of a span that
// doubles, so that those who have split it come back one after the other.
func (p *pauses) afterSplit() time.Duration {
	p.splits++
	return rand.N(min(minPause<<min(p.splits, 6), maxPause)) //nolint:gosec // jitter needs no secret randomness
}

// after returns how long to pause after this answer, or fault. deaf is true
// where the server does not know yet that this process listens.
func (p *pauses) after(answer store.Answer, err error, deaf bool) time.Duration {
	if err != nil || answer.Granted { // too late to be of use
		p.faults++
		return backoff(p.faults - 1)
	}
	p.faults, p.splits = 0, 0
	if !answer.Silent && !deaf {
		p.polls = 0
		return jitter(untilExpiry(answer.Remaining, recheckInterval))
	}
	p.polls++
	return untilExpiry(answer.Remaining, pollPauses[min(p.polls, len(pollPauses))-1])
}

// backoff returns a random part, at least half, of a span that doubles with
// each try from the shortest to the longest pause.
func backoff(tries int) time.Duration {
	span := maxPause
	if tries < 6 { // 5 ms doubled six times is over the longest
		span = min(minPause<<tries, maxPause)
	}
	return span/2 + rand.N(span/2) //nolint:gosec // jitter needs no secret randomness
}

// jitter adds up to a quarter, so that the waiters of many processes do not
// look all at once.
func jitter(d time.Duration) time.Duration {
	return d + rand.N(d/4+1) //nolint:gosec // jitter needs no secret randomness
}

// lesser returns the pause, but not one past the end of the key in the way.
func untilExpiry(remaining, pause time.Duration) time.Duration {
	if remaining > 0 && remaining < pause {
		return remaining
	}
	return pause
}

// pause asks again after d, or when a hint or a caller that leaves wakes the
// line. It asks at once if that has happened already, if nobody waits any more,
// or if somebody wants an answer at once.
func (q *queue) pause(d time.Duration) {
	if d == 0 || q.nowaiters > 0 {
		q.ask()
		return
	}
	q.pauseAlways(d)
}

// sleep is pause for those, too, who want an answer at once.
func (q *queue) pauseAlways(d time.Duration) {
	if q.recheck || q.first == nil {
		q.ask()
		return
	}
	q.engine.work.Add()
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		defer q.engine.work.Done()
		q.shard.mu.Lock()
		defer q.shard.mu.Unlock()
		if q.timer == timer {
			q.timer = nil
			q.ask()
		}
	})
	q.timer = timer
}

// wake ends the line's pause, or keeps it from the next one.
func (q *queue) wake() {
	q.recheck = true
	if q.timer == nil {
		return
	}
	if q.timer.Stop() {
		q.engine.work.Done()
	}
	q.timer = nil
	q.ask()
}
