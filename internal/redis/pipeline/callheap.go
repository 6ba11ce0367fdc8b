package pipeline

import (
	"container/heap"
	"time"
)

// A callHeap is a heap of the calls of a lane by the times of their next checks. A check
// that is too early does no harm. So only a call whose check would be too late is moved.
type callHeap []check

// A check is the time at which a lane has to look at a call. The heap compares times without
// a look at the calls, which would be slow: a lane may have more calls than a processor caches.
type check struct {
	at   time.Time
	call *Call
}

// put adds a call, or moves it: its next check is at that time.
func (h *callHeap) put(c *Call, at time.Time) {
	if c.index == 0 {
		h.Push(c)
	}
	(*h)[c.index-1].at = at
	heap.Fix(h, c.index-1)
}

// remove removes a call if the heap has it.
func (h *callHeap) remove(c *Call) {
	if c.index > 0 {
		heap.Remove(h, c.index-1)
	}
}

// due returns the first call whose check is due; nil if there is none.
func (h callHeap) due(now time.Time) *Call {
	if len(h) == 0 || h[0].at.After(now) {
		return nil
	}
	return h[0].call
}

// Len implements heap.Interface.
func (h callHeap) Len() int { return len(h) }

// Less implements heap.Interface.
func (h callHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }

// Swap implements heap.Interface.
func (h callHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].call.index, h[j].call.index = i+1, j+1
}

// Push implements heap.Interface. Call put instead.
func (h *callHeap) Push(x any) {
	c, _ := x.(*Call)
	*h = append(*h, check{call: c})
	c.index = len(*h)
}

// Pop implements heap.Interface. Call remove instead.
func (h *callHeap) Pop() any {
	end := len(*h) - 1
	c := (*h)[end].call
	(*h)[end], *h = check{}, (*h)[:end]
	c.index = 0
	return c
}
