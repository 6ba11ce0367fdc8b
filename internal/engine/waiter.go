package engine

import (
	"sync/atomic"
	"time"
)

// A waiter is a caller in a queue.
type waiter struct {
	hold  *Hold
	queue *queue // nil once the waiter has left, or was granted or refused

	prev, next *waiter

	// nowait is true for a caller that may not wait. It is in the queue only until the
	// store has answered once.
	nowait bool
	// endsOnFault is true for a caller that is refused when the store does not answer the
	// next request.
	endsOnFault bool
	// maxWait is how long it waits; 0 and less is without limit.
	maxWait time.Duration
	// queued is true once it is known that the caller has to wait.
	queued bool
	// updates receives a value when it turns out later that the caller has to wait. It
	// is closed when the waiter is settled: granted the lease, or refused. It is nil
	// while the waiter sends its own request.
	updates chan struct{}
	refusal *Refusal // set before updates is closed; nil if granted
}

// push adds the waiter to the end of the queue.
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

// remove removes the waiter from the queue.
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

// refuse removes the waiter and settles it with a refusal.
func (q *queue) refuse(w *waiter, refusal *Refusal) {
	q.remove(w)
	w.refusal = refusal
	w.settle()
}

// settle wakes the waiter: it was granted the lease, or refused.
func (w *waiter) settle() {
	if w.updates != nil {
		close(w.updates)
	}
}

// refuseAll refuses all callers in the queue.
func (q *queue) refuseAll(refusal *Refusal) {
	q.refuseIf(func(*waiter) *Refusal { return refusal })
}

// refuseNowaiters refuses the callers that may not wait.
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

// refuseIf refuses the callers for which reason returns a refusal.
func (q *queue) refuseIf(reason func(*waiter) *Refusal) {
	for w := q.first; w != nil; {
		next := w.next
		if refusal := reason(w); refusal != nil {
			q.refuse(w, refusal)
		}
		w = next
	}
}

// limits are the maximum numbers of waiters.
type limits struct {
	perKey, total int
	waiting       atomic.Int64 // in all queues
}

// maxWaiters returns how many callers may wait for the key if the waiter is one of them.
func (q *queue) maxWaiters(w *waiter) int {
	if most := w.hold.request.MaxWaiters; most > 0 {
		return most
	}
	return q.engine.limits.perKey
}

// refuseLast refuses one waiter: the last one that allows no more waiters than there are.
func (q *queue) refuseLast() {
	for w := q.last; w != nil; w = w.prev {
		if q.queued >= q.maxWaiters(w) {
			q.refuse(w, &Refusal{Reason: QueueFull})
			return
		}
	}
}

// markQueued counts a caller that has to wait. It returns a refusal if there is no
// room, and nil otherwise.
func (q *queue) markQueued(w *waiter) *Refusal {
	limits := &q.engine.limits
	if q.queued >= q.maxWaiters(w) {
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

// unmarkQueued ends the count of a caller that waits.
func (q *queue) unmarkQueued(w *waiter) {
	if w.queued {
		q.queued--
		q.engine.limits.waiting.Add(-1)
	}
}
