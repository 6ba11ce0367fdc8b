package engine

import (
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// errNoAnswer is the lastFault of a waitlist that the store has not answered yet.
var errNoAnswer = errors.New("no answer yet")

// A waitlist has the callers of one key with one limit, in the order of arrival. The
// exclusive callers of a key have one queue, which asks the store for the first of them.
// Shared callers have several queues: see shared.go. The mutex of the key's shard guards
// it.
type waitlist struct {
	limit store.Limit
	root  *queue // the queue of the exclusive callers of the key
	// ticket is the token of a ticket, for which the one caller of the list gets the key; "" is
	// none.
	ticket string

	first, last *waiter
	callers     int // callers in the list
	nowaiters   int // the callers that may not wait
	queued      int // the callers that were notified that they have to wait

	// episodes is how many queues of the list are not idle, and holders how many have a lease
	// with a holder.
	episodes, holders int
	// queues has all queues of a shared list, in any order. acquiring has those that will have a lease for
	// one more caller, in the order in which they began to ask.
	queues, acquiring []*queue
	few               [2]*queue // the memory of both lists while they have one queue

	// lastFault is the fault of the store's last command; nil after a reply. While it
	// is set, it is not known whether another holds the key.
	lastFault error
	// isStuck is true if the store's last reply named a holder of another program, whose
	// key never expires.
	isStuck bool

	// ready and stop are the results of the store's Listen; nil while the list does
	// not listen. lastHint is when the last hint arrived.
	ready    <-chan struct{}
	stop     func()
	lastHint time.Time
}

// push adds the waiter to the end of the list.
func (l *waitlist) push(w *waiter) {
	w.list = l
	w.prev = l.last
	if l.last != nil {
		l.last.next = w
	} else {
		l.first = w
	}
	l.last = w
	l.callers++
	if w.nowait {
		l.nowaiters++
	}
}

// remove removes the waiter from the list.
func (l *waitlist) remove(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.last = w.prev
	}
	w.list, w.prev, w.next = nil, nil, nil
	l.callers--
	if w.nowait {
		l.nowaiters--
	}
	l.unmarkQueued(w)
}

// refuse removes the waiter and settles it with a refusal.
func (l *waitlist) refuse(w *waiter, refusal *Refusal) {
	l.remove(w)
	w.refusal = refusal
	w.settle()
}

// refuseAll refuses all callers in the list.
func (l *waitlist) refuseAll(refusal *Refusal) {
	l.refuseIf(func(*waiter) *Refusal { return refusal })
}

// refuseNowaiters refuses callers that may not wait, from the last one on, until no more
// than keep callers are left: for those, other commands of the list are in flight.
func (l *waitlist) refuseNowaiters(refusal *Refusal, keep int) {
	for w := l.last; w != nil && l.nowaiters > 0 && l.callers > keep; {
		prev := w.prev
		if w.nowait {
			l.refuse(w, refusal)
		}
		w = prev
	}
}

// refuseIf refuses the callers for which reason returns a refusal.
func (l *waitlist) refuseIf(reason func(*waiter) *Refusal) {
	for w := l.first; w != nil; {
		next := w.next
		if refusal := reason(w); refusal != nil {
			l.refuse(w, refusal)
		}
		w = next
	}
}

// firstWaiter returns the first caller that may wait; nil if there is none.
func (l *waitlist) firstWaiter() *waiter {
	w := l.first
	for w != nil && w.nowait {
		w = w.next
	}
	return w
}

// firstUnqueued returns the caller to notify that it has to wait; nil if there is none. It is
// the first one of an exclusive list, and the first one that is not notified of a shared
// list, of which each queue may be refused.
func (l *waitlist) firstUnqueued() *waiter {
	if l.limit.IsShared() && l.queued+l.nowaiters == l.callers {
		return nil
	}
	w := l.first
	for w != nil && l.limit.IsShared() && (w.queued || w.nowait) {
		w = w.next
	}
	if w == nil || w.queued {
		return nil
	}
	return w
}

// hasWaiters reports whether a caller of the list may wait.
func (l *waitlist) hasWaiters() bool { return l.callers > l.nowaiters }

// listen subscribes to hints for the key. It does so when a caller has to wait. The
// subscription lasts until all queues of the list are idle.
func (l *waitlist) listen() {
	if l.stop == nil {
		l.ready, l.stop = l.root.engine.store.Listen(l.root.key)
	}
}

func (l *waitlist) unlisten() {
	if l.stop != nil {
		l.stop()
		l.ready, l.stop = nil, nil
	}
}

// isListening reports whether the server has confirmed that this process listens.
func (l *waitlist) isListening() bool {
	select {
	case <-l.ready: // nil while it does not listen: never ready
		return true
	default:
		return false
	}
}

// isBusy reports whether it is known that a new caller has to wait.
func (l *waitlist) isBusy() bool {
	switch {
	case l.ticket != "":
		return false // only the store knows
	case l.limit.IsShared():
		return l.first != nil && l.isContended() || !l.mayStart() && l.placesLeft() <= 0
	}
	switch q := l.root; q.state {
	case held, passing:
		return true
	case asking:
		return q.contended && q.lastFault == nil && q.first != nil
	case idle, releasing:
	}
	return false
}
