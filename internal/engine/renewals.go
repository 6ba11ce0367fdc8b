package engine

import (
	"container/heap"
	"sync"
	"time"
)

// renewals is the one scheduler of an engine: it knows when each lease is to
// be renewed next. It has a timer and no goroutine, so a held lease costs none.
// Its mutex is taken inside those of the shards.
type renewals struct {
	// due is called on a goroutine of its own for each lease whose time is come.
	due func(*lease)

	mu    sync.Mutex
	queue leaseHeap
	timer *time.Timer
}

// schedule sets when the lease is to be renewed next.
func (r *renewals) schedule(l *lease, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.due = at
	if l.position == 0 {
		heap.Push(&r.queue, l)
	} else {
		heap.Fix(&r.queue, l.position-1)
	}
	r.set()
}

// cancel takes the lease off the schedule.
func (r *renewals) cancel(l *lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.position != 0 {
		heap.Remove(&r.queue, l.position-1)
		r.set()
	}
}

// set sets the timer to the first lease of the queue.
func (r *renewals) set() {
	switch {
	case len(r.queue) == 0:
		if r.timer != nil {
			r.timer.Stop()
		}
	case r.timer == nil:
		r.timer = time.AfterFunc(time.Until(r.queue[0].due), r.tick)
	default:
		r.timer.Reset(time.Until(r.queue[0].due))
	}
}

// tick takes the leases whose time is come off the queue and hands them on.
func (r *renewals) tick() {
	r.mu.Lock()
	now := time.Now()
	var ready []*lease
	for len(r.queue) > 0 && !r.queue[0].due.After(now) {
		l, _ := heap.Pop(&r.queue).(*lease)
		ready = append(ready, l)
	}
	r.set()
	r.mu.Unlock()
	for _, l := range ready {
		r.due(l)
	}
}

// A leaseHeap has the lease that is due first in front. It implements
// heap.Interface and keeps each lease's position, counted from 1.
type leaseHeap []*lease

func (h leaseHeap) Len() int { return len(h) }

func (h leaseHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

func (h leaseHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].position, h[j].position = i+1, j+1
}

// Push appends a lease.
func (h *leaseHeap) Push(x any) {
	l, _ := x.(*lease)
	*h = append(*h, l)
	l.position = len(*h)
}

// Pop takes the last lease off.
func (h *leaseHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	l.position = 0
	return l
}
