package engine

import (
	"sync/atomic"
	"time"
)

// A waiter is a caller that stands in a line.
type waiter struct {
	hold  *Hold
	queue *queue // nil once it has left or is settled

	prev, next *waiter

	// try is true for a caller that may not wait: it stands in line only until
	// the store has answered once.
	nowait bool
	// patience is how long it stands in line; 0 and less is without end.
	maxWait time.Duration
	// queued is true once it is known that the caller has to wait.
	queued bool
	// news brings a value when it turns out later that the caller has to wait,
	// and is closed when the waiter is settled: granted the lease, or refused. It
	// is nil while the waiter puts its question itself.
	updates chan struct{}
	refusal *Refusal // set before news is closed; nil if granted
}

// join puts the waiter at the end of the line.
func (q *queue) push(w *waiter) {
	w.queue = q
	w.prev = q.last
	if q.last != nil {
		q.last.next = w
	} else {
		q.first = w
	}
	q.last = w
	q.callers++
	if w.nowait {
		q.nowaiters++
	}
}

// unlink takes the waiter out of the line.
func (q *queue) remove(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.last = w.prev
	}
	w.queue, w.prev, w.next = nil, nil, nil
	q.callers--
	if w.nowait {
		q.nowaiters--
	}
	q.unmarkQueued(w)
}

// refuse settles the waiter with a refusal.
func (q *queue) refuse(w *waiter, refusal *Refusal) {
	q.remove(w)
	w.refusal = refusal
	w.settle()
}

// settle tells the waiter that it is settled.
func (w *waiter) settle() {
	if w.updates != nil {
		close(w.updates)
	}
}

// refuseAll refuses everybody who waits.
func (q *queue) refuseAll(refusal *Refusal) {
	q.refuseIf(func(*waiter) *Refusal { return refusal })
}

// refuseTries refuses those who may not wait.
func (q *queue) refuseNowaiters(refusal *Refusal) {
	if q.nowaiters == 0 {
		return
	}
	q.refuseIf(func(w *waiter) *Refusal {
		if w.nowait {
			return refusal
		}
		return nil
	})
}

// refuseIf refuses those for whom reason returns a refusal.
func (q *queue) refuseIf(reason func(*waiter) *Refusal) {
	for w := q.first; w != nil; {
		next := w.next
		if refusal := reason(w); refusal != nil {
			q.refuse(w, refusal)
		}
		w = next
	}
}

// limits bound how many callers wait.
type limits struct {
	perKey, total int
	waiting       atomic.Int64 // in all lines
}

// queue notes that a caller has to wait. It returns the refusal of one for whom
// there is no room; nil if there is.
func (q *queue) markQueued(w *waiter) *Refusal {
	limits := &q.engine.limits
	if q.queued >= limits.perKey {
		return &Refusal{Reason: QueueFull}
	}
	if limits.waiting.Add(1) > int64(limits.total) {
		limits.waiting.Add(-1)
		return &Refusal{Reason: Overloaded}
	}
	q.queued++
	w.queued = true
	return nil
}

// dequeue notes that a caller does not wait any more.
func (q *queue) unmarkQueued(w *waiter) {
	if w.queued {
		q.queued--
		q.engine.limits.waiting.Add(-1)
	}
}
