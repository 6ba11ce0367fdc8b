package engine

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/reqlock/reqlock/internal/backoff"
	"github.com/reqlock/reqlock/internal/store"
)

// recheckInterval is how long a waiter relies on hints. Then it checks the key, because
// a hint may be lost, the holder dead, or its place in the store's queue lost.
const recheckInterval = time.Second

// The pauses after a fault grow from minPause to maxPause.
const (
	minPause = 5 * time.Millisecond
	maxPause = 250 * time.Millisecond
)

// pollPauses are the pauses between two checks of a key with a holder that sends no hint, in
// order; the last one repeats.
var pollPauses = [...]time.Duration{50 * time.Millisecond, 100 * time.Millisecond, maxPause}

// maxSplits is how many split votes in a row pass before the nowait callers are refused
// as Busy.
const maxSplits = 4

// maxSkippedChecks is how many checks in a row a queue leaves to the first one of its list.
const maxSkippedChecks = 3

// pauses counts how often in a row the queue has paused for the same reason, and how many
// checks it has skipped since its last request.
type pauses struct{ faults, polls, splits, skipped int }

// afterSplit returns the pause after a split vote: a random part of a span that
// doubles, so that the processes that split the vote do not come back at the same time.
func (p *pauses) afterSplit() time.Duration {
	p.splits++
	return rand.N(min(minPause<<min(p.splits, 6), maxPause)) //nolint:gosec // jitter needs no secret randomness
}

// after returns the pause after this answer or fault. notListening is true if the server has
// not confirmed yet that this process listens.
func (p *pauses) after(answer store.Answer, err error, notListening bool) time.Duration {
	if err != nil || answer.Granted { // granted: the grant was too late
		p.faults++
		return backoff.Pause(p.faults-1, minPause, maxPause)
	}
	p.faults, p.splits = 0, 0
	if !answer.ForeignHolder && !notListening {
		p.polls = 0
		return jitter(untilExpiry(answer.Remaining, recheckInterval))
	}
	p.polls++
	return untilExpiry(answer.Remaining, pollPauses[min(p.polls, len(pollPauses))-1])
}

// jitter adds up to a quarter, so that the waiters of many processes do not check the
// key at the same time.
func jitter(d time.Duration) time.Duration {
	return d + rand.N(d/4+1) //nolint:gosec // jitter needs no secret randomness
}

// untilExpiry returns the pause, shortened to the remaining TTL of the key.
func untilExpiry(remaining, pause time.Duration) time.Duration {
	if remaining > 0 && remaining < pause {
		return remaining
	}
	return pause
}

// pause asks again after d, or when a hint or a leaving caller wakes the queue. It asks
// at once if that has happened before, or if no caller needs the queue any more.
func (q *queue) pause(d time.Duration) {
	if d == 0 || q.recheck || !q.isNeeded() {
		q.ask()
		return
	}
	q.engine.work.Add()
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		defer q.engine.work.Done()
		q.shard.mu.Lock()
		defer q.shard.mu.Unlock()
		switch {
		case q.timer != timer:
		case q.skipsCheck():
			timer.Reset(jitter(recheckInterval))
			q.engine.work.Add()
		default:
			q.timer = nil
			q.ask()
		}
	})
	q.timer = timer
}

// skipsCheck reports whether the queue leaves its check of the key to the first queue of a
// shared list, and counts that. If the first one finds a grant without a hint, it makes the
// others check, too. So a process with many waiters sends few commands while they wait.
func (q *queue) skipsCheck() bool {
	if len(q.acquiring) == 0 || q.acquiring[0] == q || !q.acquiring[0].contended ||
		q.lastFault != nil || !q.isListening() || q.pauses.skipped == maxSkippedChecks {
		return false
	}
	q.pauses.skipped++
	return true
}

// wakeOthers makes the other queues of a shared list check the key.
func (q *queue) wakeOthers() {
	for _, other := range slices.Clone(q.acquiring) {
		if other != q && other.timer != nil {
			other.wake()
		}
	}
}

// wake ends the queue's pause. If the queue does not pause, it skips the next pause.
func (q *queue) wake() {
	q.recheck = true
	if q.asksLater {
		q.ask()
		return
	}
	if q.timer == nil {
		return
	}
	if q.timer.Stop() {
		q.engine.work.Done()
	}
	q.timer = nil
	q.ask()
}
