package pubsub

import (
	"math/rand/v2"
	"testing"
	"time"
)

// After random changes, the first channel is the first one that is due, and due returns
// exactly the channels that are due.
func TestHeapReturnsTheChannelsThatAreDue(t *testing.T) {
	t.Parallel()
	var h channelHeap
	begin := time.Now()
	channels, in := make([]shardChannel, 100), make(map[*shardChannel]bool)
	for range 5000 {
		c := &channels[rand.N(len(channels))]
		if rand.N(3) == 0 {
			h.remove(c)
			delete(in, c)
		} else {
			c.resolveAt = begin.Add(time.Duration(rand.N(1000)))
			h.put(c)
			in[c] = true
		}
		if len(h) != len(in) {
			t.Fatalf("%d channels, want %d", len(h), len(in))
		}
		at := begin.Add(time.Duration(rand.N(1000)))
		want := 0
		for c := range in {
			if !c.resolveAt.After(at) {
				want++
			}
			if c.resolveAt.Before(h[0].resolveAt) {
				t.Fatal("another channel is due before the first one")
			}
		}
		due := h.due(at, len(channels))
		if len(due) != want {
			t.Fatalf("due returns %d channels, want %d", len(due), want)
		}
		for _, c := range due {
			if !in[c] || c.resolveAt.After(at) {
				t.Fatal("due returns a channel that is not due")
			}
		}
		if n := len(h.due(at, 3)); n != min(want, 3) {
			t.Fatalf("due returns %d channels, want at most 3", n)
		}
	}
	h.removeAll()
	for i := range channels {
		if channels[i].heapIndex != 0 {
			t.Fatal("a channel is left")
		}
	}
}
