package engine

import (
	"math"
	"slices"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// The shared callers of a key form one waitlist for each limit. The list has a queue for
// each lease: a queue that asks, holds a lease or releases one, as that of exclusive
// callers does. Whichever queue gets a lease first gives it to the first caller of the
// list. So no caller depends on one queue, and a lease that is lost costs its holder only.

// sharedLists has the waitlists of the shared callers of a key.
type sharedLists struct {
	lists []*waitlist
	// othersWaited is when it was last known that others wait for the key. A hint names one
	// shared lease, or a few of them, but it is about all of them.
	othersWaited time.Time
}

// sharedWithOthers reports whether others have waited for the key of a shared queue since this
// process began to use it.
func (q *queue) sharedWithOthers() bool {
	return q.limit.IsShared() && !q.root.shared.othersWaited.IsZero()
}

// maxAcquiring is how many queues of a waitlist ask for a lease at a time: as many as one
// command of the store lets in together.
const maxAcquiring = 64

// listOf returns the waitlist of the callers with this limit, and makes one if there is
// none. The queue is the root.
func (q *queue) listOf(limit store.Limit) *waitlist {
	if !limit.IsShared() {
		return &q.exclusive
	}
	if l := q.sharedList(limit); l != nil {
		return l
	}
	l := &waitlist{limit: limit, root: q, lastFault: errNoAnswer}
	l.queues, l.acquiring = l.few[:0:1], l.few[1:1]
	q.shared.lists = append(q.shared.lists, l)
	return l
}

// sharedList returns the waitlist of the shared callers with this limit; nil if there is
// none.
func (q *queue) sharedList(limit store.Limit) *waitlist {
	for _, l := range q.shared.lists {
		if l.limit == limit {
			return l
		}
	}
	return nil
}

// allQueues returns the root and the queues of its shared callers.
func (q *queue) allQueues() []*queue {
	all := []*queue{q}
	for _, l := range q.shared.lists {
		all = append(all, l.queues...)
	}
	return all
}

// idleQueue returns a queue of the list for one more episode: see mayStart.
func (l *waitlist) idleQueue() *queue {
	if l.isRoot() {
		return l.root
	}
	q := l.root.engine.unusedQueue(l.root.shard, l.root.key)
	q.waitlist, q.place = l, len(l.queues)
	l.queues = append(l.queues, q)
	return q
}

// leaveList removes an unused queue from its list, and the list from the root with the last
// queue.
func (q *queue) leaveList() {
	l, root := q.waitlist, q.root
	end := len(l.queues) - 1
	last := l.queues[end]
	l.queues[q.place], last.place = last, q.place
	l.queues[end], l.queues = nil, l.queues[:end]
	if end == 0 {
		root.shared.lists = removeFrom(root.shared.lists, l)
		root.recycle()
	}
}

// removeFrom removes the element from the slice, if it is there.
func removeFrom[T comparable](from []T, element T) []T {
	if i := slices.Index(from, element); i >= 0 {
		return slices.Delete(from, i, i+1)
	}
	return from
}

// setAcquiring notes whether the queue will have a lease for one more caller of a shared list.
func (q *queue) setAcquiring(acquires bool) {
	switch {
	case !q.limit.IsShared():
	case !acquires:
		q.acquiring = removeFrom(q.acquiring, q)
	case !slices.Contains(q.acquiring, q):
		q.acquiring = append(q.acquiring, q)
	}
}

// isNeeded reports whether a caller is left to this queue by the others that acquire a lease.
func (q *queue) isNeeded() bool { return q.isNeededFor(q.callers) }

// isNeededFor is isNeeded for so many callers.
func (q *queue) isNeededFor(callers int) bool {
	others := len(q.acquiring)
	if slices.Contains(q.acquiring, q) {
		others--
	}
	return others < min(callers, maxAcquiring)
}

// mayStart reports whether one more queue may ask. A process has no more queues than leases
// that can be out: more of them could only wait for its own.
func (l *waitlist) mayStart() bool {
	switch l.limit {
	case store.Exclusive:
		return l.episodes == 0
	case store.Unlimited:
		return len(l.acquiring) < maxAcquiring
	default:
		return len(l.acquiring) < maxAcquiring && l.episodes < int(l.limit)
	}
}

// balance starts an episode for each caller of a shared list that needs one more, and ends
// the pause of queues that no caller needs any more, from the last one on.
func (l *waitlist) balance() {
	if !l.limit.IsShared() {
		return
	}
	for l.callers > len(l.acquiring) && l.mayStart() {
		l.idleQueue().startEpisode(l.isContended())
	}
	for i := len(l.acquiring) - 1; i >= 0 && l.callers < len(l.acquiring); i-- {
		if q := l.acquiring[i]; q.timer != nil {
			q.wake()
		}
	}
}

// isContended reports whether the store has refused a queue of a shared list that still
// asks.
func (l *waitlist) isContended() bool {
	return l.lastFault == nil && slices.ContainsFunc(l.acquiring, func(q *queue) bool { return q.contended })
}

// undecided returns how many other queues of the list have a command in flight that may bring
// a lease for a caller. A queue that was refused before has none.
func (q *queue) undecided() (n int) {
	for _, other := range q.acquiring {
		decided := other.state == asking && (other.contended || other.timer != nil)
		if other != q && !decided {
			n++
		}
	}
	return n
}

// wakeFirst makes the queue ask again that began to ask first.
func (l *waitlist) wakeFirst() {
	switch {
	case !l.limit.IsShared():
		l.root.wake()
	case len(l.acquiring) > 0:
		l.acquiring[0].wake()
	}
}

// placesLeft returns for how many leases there is room beside those of this process.
func (l *waitlist) placesLeft() int {
	switch l.limit {
	case store.Exclusive:
		return 0
	case store.Unlimited:
		return math.MaxInt
	}
	return int(l.limit) - l.holders
}

// othersWaitHere reports whether callers of this process with another limit wait for the
// key.
func (l *waitlist) othersWaitHere() bool {
	if !l.isRoot() && l.root.hasWaiters() {
		return true
	}
	for _, other := range l.root.shared.lists {
		if other != l && other.hasWaiters() {
			return true
		}
	}
	return false
}

// yields reports whether a shared lease must not pass to the waiter, because a caller that
// came before wants the key alone.
func (l *waitlist) yields(w *waiter) bool {
	if !l.limit.IsShared() {
		return false
	}
	alone := l.root.firstWaiter()
	return alone != nil && alone.arrived < w.arrived
}
