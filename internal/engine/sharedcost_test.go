package engine

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// A permit costs the same however many permits of the key are held in this process, and
// however many callers wait. The limit of the time is far below a look at each of them.
func TestCostOfPermitDoesNotGrowWithPermits(t *testing.T) {
	fastest := func(n int) time.Duration {
		e, _, _ := newEngine()
		l := e.rootOf(e.shardOf("k"), "k").listOf(store.Limit(n + 1))
		for range n {
			l.idleQueue().setState(held)
			w := &waiter{hold: &Hold{}}
			l.push(w)
			l.queued++
			w.queued = true
		}
		best := time.Hour
		for range 200 {
			begun := time.Now()
			l.idleQueue().setState(held)
			if left, w := l.placesLeft(), l.firstUnqueued(); left != 0 || w != nil {
				t.Fatalf("%d places are left, and the first waiter is %p", left, w)
			}
			released := l.queues[n/2]
			released.setState(idle)
			released.recycle()
			best = min(best, time.Since(begun))
		}
		if len(l.queues) != n || l.placesLeft() != 1 {
			t.Errorf("%d queues, %d places are left", len(l.queues), l.placesLeft())
		}
		return best
	}
	few, many := fastest(1000), fastest(100_000)
	if many > 8*few {
		t.Errorf("%v with 1000 permits, %v with 100000", few, many)
	}
}
