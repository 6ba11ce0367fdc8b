package engine

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Shared callers that wait for a writer go in together, also if they are more than ask at a
// time.
func TestWaitingReadersGoInTogether(t *testing.T) {
	t.Parallel()
	for _, limit := range []store.Limit{store.Unlimited, 1000} {
		row(t, fmt.Sprintf("limit %d", limit), func(t *testing.T) {
			p := newProcesses(2)
			writer := hold(t, p.engines[0], request(0))
			const n = 3 * maxAcquiring
			var in atomic.Int64
			for i := range n {
				waiting(t, p.engines[i%2], sharing(limit, WaitForever), func(*Hold) {
					in.Add(1)
					time.Sleep(100 * time.Millisecond)
					in.Add(-1)
				})
			}
			if queue := len(p.server.queue("k")); queue != 2*maxAcquiring {
				t.Errorf("%d tokens in the store's queue, want %d", queue, 2*maxAcquiring)
			}
			release(t, writer)
			sleep(50 * time.Millisecond)
			if got := in.Load(); got != n {
				t.Errorf("%d of %d at once", got, n)
			}
			time.Sleep(time.Second)
			p.checkIdle(t)
		})
	}
}

// Two leases go back at the same moment, and one caller waits. Only one of them takes a place
// for it in the store's queue.
func TestReleasesTakeOnePlaceForOneCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		holds := holdAll(t, p.engines[0], sharing(2, 0), 2)
		var served atomic.Bool
		waiting(t, p.engines[0], sharing(2, WaitForever), func(*Hold) { served.Store(true) })
		time.Sleep(time.Second) // the budgets are spent
		var places atomic.Int64
		p.stores[0].before.set(func(transition string, r storetest.AnyRequest) error {
			if transition == "release" && r.Rejoin != "" {
				places.Add(1)
			}
			time.Sleep(100 * time.Millisecond)
			return nil
		})
		for _, h := range holds {
			go func() { release(t, h) }()
		}
		time.Sleep(time.Second)
		if n := places.Load(); n != 1 || !served.Load() {
			t.Errorf("%d places, served %v", n, served.Load())
		}
		p.checkIdle(t)
	})
}

// A process begins no more episodes than maxAcquiring, and needs no more, so that no queue begins
// and ends without end.
func TestAcquiringQueuesAreLimited(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		limit               store.Limit
		acquiring, episodes int
		mayStart            bool
	}{
		{store.Exclusive, 0, 0, true},
		{store.Exclusive, 0, 1, false},
		{store.Unlimited, maxAcquiring - 1, 1000, true},
		{store.Unlimited, maxAcquiring, 1000, false},
		{3, 0, 2, true},
		{3, 0, 3, false},
		{1000, maxAcquiring - 1, 999, true},
		{1000, maxAcquiring, 999, false},
	} {
		l := &waitlist{limit: test.limit, acquiring: make([]*queue, test.acquiring), episodes: test.episodes}
		if got := l.mayStart(); got != test.mayStart {
			t.Errorf("%+v: may start %v", test, got)
		}
	}
	for _, test := range []struct {
		others, callers int
		isNeeded        bool
	}{
		{0, 0, false},
		{0, 1, true},
		{1, 1, false},
		{maxAcquiring - 1, 2 * maxAcquiring, true},
		{maxAcquiring, 2 * maxAcquiring, false},
	} {
		q := &queue{waitlist: &waitlist{limit: store.Unlimited, acquiring: make([]*queue, test.others)}}
		for _, acquires := range []bool{false, true} {
			q.setAcquiring(acquires)
			if got := q.isNeededFor(test.callers); got != test.isNeeded {
				t.Errorf("%+v, acquires %v: needed %v", test, acquires, got)
			}
		}
	}
}

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
