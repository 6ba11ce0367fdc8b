package pubsub

import (
	"container/heap"
	"time"
)

// A shardQueue is the channels that are sought, as a heap by when they are due: a
// look at it costs what is due, however many there are. Each knows its position.
type shardQueue []*shardChannel

// put adds a channel, or moves it to where it belongs by now. It is called after
// each change of when it is due.
func (q *shardQueue) put(c *shardChannel) {
	if c.position == 0 {
		heap.Push(q, c)
		return
	}
	heap.Fix(q, c.position-1)
}

// remove takes a channel out, if it is there.
func (q *shardQueue) remove(c *shardChannel) {
	if c.position > 0 {
		heap.Remove(q, c.position-1)
	}
}

// empty takes all out.
func (q *shardQueue) empty() {
	for _, c := range *q {
		c.position = 0
	}
	*q = nil
}

// due returns some that are due at a time, so many at most, and leaves them where
// they are.
func (q *shardQueue) due(at time.Time, limit int) (due []*shardChannel) {
	for next := []int{0}; len(next) > 0 && len(due) < limit; {
		i := next[len(next)-1]
		next = next[:len(next)-1]
		if i < len(*q) && !(*q)[i].due.After(at) {
			due = append(due, (*q)[i])
			next = append(next, 2*i+1, 2*i+2) // what is below is due later
		}
	}
	return due
}

// Len is how many there are.
func (q *shardQueue) Len() int { return len(*q) }

// Less reports which of two is due first.
func (q *shardQueue) Less(i, j int) bool { return (*q)[i].due.Before((*q)[j].due) }

// Swap exchanges two.
func (q *shardQueue) Swap(i, j int) {
	(*q)[i], (*q)[j] = (*q)[j], (*q)[i]
	(*q)[i].position, (*q)[j].position = i+1, j+1
}

// Push is called by put.
func (q *shardQueue) Push(c any) {
	channel := c.(*shardChannel)
	*q = append(*q, channel)
	channel.position = len(*q)
}

// Pop is called by remove.
func (q *shardQueue) Pop() any {
	end := len(*q) - 1
	c := (*q)[end]
	(*q)[end], *q = nil, (*q)[:end]
	c.position = 0
	return c
}
