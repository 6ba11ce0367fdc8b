package engine

import (
	"sync/atomic"
	"time"
)

// limits are the maximum numbers of waiters.
type limits struct {
	total   int
	waiting atomic.Int64 // for all keys
}

// queuedForKey returns how many callers with any limit wait for the key.
func (l *waitlist) queuedForKey() int {
	n := l.root.queued
	for _, shared := range l.root.shared.lists {
		n += shared.queued
	}
	return n
}

// refuseLast refuses one waiter: the last one that allows no more waiters than there are.
func (l *waitlist) refuseLast() {
	for w := l.last; w != nil; w = w.prev {
		if l.queuedForKey() >= w.hold.request.MaxWaiters {
			l.refuse(w, &Refusal{Reason: QueueFull})
			return
		}
	}
}

// markQueued counts a caller that has to wait. It returns a refusal if there is no
// room, and nil otherwise.
func (l *waitlist) markQueued(w *waiter) *Refusal {
	limits := &l.root.engine.limits
	if l.queuedForKey() >= w.hold.request.MaxWaiters {
		return &Refusal{Reason: QueueFull}
	}
	if limits.waiting.Add(1) > int64(limits.total) {
		limits.waiting.Add(-1)
		return &Refusal{Reason: Overloaded}
	}
	l.queued++
	w.queued = true
	if w.hold.since.IsZero() {
		w.hold.since = time.Now()
	}
	return nil
}

// unmarkQueued ends the count of a caller that waits.
func (l *waitlist) unmarkQueued(w *waiter) {
	if w.queued {
		l.queued--
		l.root.engine.limits.waiting.Add(-1)
	}
}
