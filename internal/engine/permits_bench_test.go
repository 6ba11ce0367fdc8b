package engine

import (
	"fmt"
	"testing"

	"github.com/reqlock/reqlock/internal/store"
)

// A permit costs the same however many permits of the key are held in this process, and
// however many callers wait.
func BenchmarkPermit(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint("permits=", n), func(b *testing.B) {
			e, _, _ := newEngine()
			l := e.rootOf(e.shardOf("k"), "k").listOf(store.Limit(n + 1))
			for range n {
				l.idleQueue().setState(held)
				w := &waiter{hold: &Hold{}}
				l.push(w)
				l.queued++
				w.queued = true
			}
			b.ReportAllocs()
			for b.Loop() {
				l.idleQueue().setState(held)
				if left, w := l.placesLeft(), l.firstUnqueued(); left != 0 || w != nil {
					b.Fatalf("%d places are left, and the first waiter is %p", left, w)
				}
				released := l.queues[n/2]
				released.setState(idle)
				released.recycle()
			}
			if len(l.queues) != n || l.placesLeft() != 1 {
				b.Errorf("%d queues, %d places are left", len(l.queues), l.placesLeft())
			}
		})
	}
}
