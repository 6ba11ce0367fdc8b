package pubsub

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Whatever is put, moved and removed, the first one is due first, and all that are
// due are found, and nothing else.
func TestTheQueueOfSoughtChannelsKnowsWhatIsDue(t *testing.T) {
	var q shardQueue
	begin := time.Now()
	channels, in := make([]shardChannel, 100), make(map[*shardChannel]bool)
	for range 5000 {
		c := &channels[rand.N(len(channels))]
		if rand.N(3) == 0 {
			q.remove(c)
			delete(in, c)
		} else {
			c.due = begin.Add(time.Duration(rand.N(1000)))
			q.put(c)
			in[c] = true
		}
		if len(q) != len(in) {
			t.Fatalf("%d channels, want %d", len(q), len(in))
		}
		at := begin.Add(time.Duration(rand.N(1000)))
		want := 0
		for c := range in {
			if !c.due.After(at) {
				want++
			}
			if c.due.Before(q[0].due) {
				t.Fatal("the first one is not due first")
			}
		}
		due := q.due(at, len(channels))
		if len(due) != want {
			t.Fatalf("%d are due, want %d", len(due), want)
		}
		for _, c := range due {
			if !in[c] || c.due.After(at) {
				t.Fatal("one is due that is not")
			}
		}
		if n := len(q.due(at, 3)); n != min(want, 3) {
			t.Fatalf("%d are due of three at most", n)
		}
	}
	q.empty()
	for i := range channels {
		if channels[i].position != 0 {
			t.Fatal("one is still there")
		}
	}
}
