package pubsub

import (
	"container/heap"
	"time"
)

// A channelHeap is a heap of the pending channels by resolveAt. due costs time in
// proportion to the channels that it returns, not to the length of the heap.
type channelHeap []*shardChannel

// put adds a channel, or restores its position. Call it after each change of resolveAt.
func (h *channelHeap) put(c *shardChannel) {
	if c.heapIndex == 0 {
		heap.Push(h, c)
		return
	}
	heap.Fix(h, c.heapIndex-1)
}

// remove removes a channel if the heap contains it.
func (h *channelHeap) remove(c *shardChannel) {
	if c.heapIndex > 0 {
		heap.Remove(h, c.heapIndex-1)
	}
}

// removeAll removes all channels.
func (h *channelHeap) removeAll() {
	for _, c := range *h {
		c.heapIndex = 0
	}
	*h = nil
}

// due returns up to limit channels that are due at a time. The channels stay in the heap.
func (h *channelHeap) due(at time.Time, limit int) (due []*shardChannel) {
	for next := []int{0}; len(next) > 0 && len(due) < limit; {
		i := next[len(next)-1]
		next = next[:len(next)-1]
		if i < len(*h) && !(*h)[i].resolveAt.After(at) {
			due = append(due, (*h)[i])
			next = append(next, 2*i+1, 2*i+2) // the children are not due earlier
		}
	}
	return due
}

// Len implements heap.Interface.
func (h *channelHeap) Len() int { return len(*h) }

// Less implements heap.Interface.
func (h *channelHeap) Less(i, j int) bool { return (*h)[i].resolveAt.Before((*h)[j].resolveAt) }

// Swap implements heap.Interface.
func (h *channelHeap) Swap(i, j int) {
	(*h)[i], (*h)[j] = (*h)[j], (*h)[i]
	(*h)[i].heapIndex, (*h)[j].heapIndex = i+1, j+1
}

// Push implements heap.Interface. Call put instead.
func (h *channelHeap) Push(c any) {
	channel := c.(*shardChannel)
	*h = append(*h, channel)
	channel.heapIndex = len(*h)
}

// Pop implements heap.Interface. Call remove instead.
func (h *channelHeap) Pop() any {
	end := len(*h) - 1
	c := (*h)[end]
	(*h)[end], *h = nil, (*h)[:end]
	c.heapIndex = 0
	return c
}
