package engine

import (
	"container/heap"
	"sync"
	"time"
)

// A schedule has the time at which each held lease is due to be renewed, or ends. An engine has
// one, with one timer and no goroutine, so a held lease needs no timer and no
// goroutine. Its mutex is locked after a shard's mutex.
type schedule struct {
	// onDue handles a lease that is due. It must not block.
	onDue func(*lease)

	mu    sync.Mutex
	heap  leaseHeap
	timer *time.Timer
	at    time.Time // when the timer fires; zero while it is stopped
}

// renewIsDue reports whether it is time to renew the lease.
func (l *lease) renewIsDue(now time.Time) bool {
	return !l.renewAt.IsZero() && !now.Before(l.renewAt)
}

// set adds the lease to the schedule, or updates its position.
func (s *schedule) set(l *lease) {
	due := l.validUntil
	if !l.renewAt.IsZero() && l.renewAt.Before(due) {
		due = l.renewAt
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.position == 0:
		l.due = due
		heap.Push(&s.heap, l)
	case !l.due.Equal(due):
		l.due = due
		heap.Fix(&s.heap, l.position-1)
	default:
		return
	}
	s.arm()
}

// drop removes the lease from the schedule.
func (s *schedule) drop(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.position != 0 {
		heap.Remove(&s.heap, l.position-1)
	}
}

// stop stops the timer of an empty schedule that is not used any more, so that the
// timer does not keep the engine in memory.
func (s *schedule) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil && len(s.heap) == 0 {
		s.timer.Stop()
		s.at = time.Time{}
	}
}

// arm sets the timer to the lease that is due first. If a timer that is set fires
// before that, it finds no lease that is due, and is set again.
func (s *schedule) arm() {
	if len(s.heap) == 0 {
		return
	}
	due := s.heap[0].due
	switch {
	case s.timer == nil:
		s.timer = time.AfterFunc(time.Until(due), s.tick)
	case s.at.IsZero() || due.Before(s.at):
		s.timer.Reset(time.Until(due))
	default:
		return
	}
	s.at = due
}

// tick removes the leases that are due and calls onDue for each.
func (s *schedule) tick() {
	s.mu.Lock()
	s.at = time.Time{}
	now := time.Now()
	var ready []*lease
	for len(s.heap) > 0 && !s.heap[0].due.After(now) {
		l, _ := heap.Pop(&s.heap).(*lease)
		ready = append(ready, l)
	}
	s.arm()
	s.mu.Unlock()
	for _, l := range ready {
		s.onDue(l)
	}
}

// A leaseHeap has the lease that is due first in front. It implements heap.Interface
// and keeps the position of each lease, counted from 1.
type leaseHeap []*lease

func (h leaseHeap) Len() int { return len(h) }

func (h leaseHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

func (h leaseHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].position, h[j].position = i+1, j+1
}

// Push implements heap.Interface.
func (h *leaseHeap) Push(x any) {
	l, _ := x.(*lease)
	*h = append(*h, l)
	l.position = len(*h)
}

// Pop implements heap.Interface.
func (h *leaseHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	l.position = 0
	return l
}
