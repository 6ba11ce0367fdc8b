package engine

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Shared callers that wait for a writer go in together, also if they are more than ask at a
// time.
func TestWaitingReadersGoInTogether(t *testing.T) {
	t.Parallel()
	for _, limit := range []store.Limit{store.Unlimited, 1000} {
		t.Run(fmt.Sprintf("limit %d", limit), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
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
				time.Sleep(50 * time.Millisecond)
				synctest.Wait()
				if got := in.Load(); got != n {
					t.Errorf("%d of %d at once", got, n)
				}
				time.Sleep(time.Second)
				p.checkIdle(t)
			})
		})
	}
}

// A process takes no more than maxAcquiring places in the store's queue, also when it gives a
// lease back for callers that wait.
func TestReleaseTakesNoPlaceBeyondMaxAcquiring(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		reader, other := hold(t, p.engines[0], sharing(store.Unlimited, 0)), hold(t, p.engines[1], sharing(store.Unlimited, 0))
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) {})
		for range 2 * maxAcquiring {
			waiting(t, p.engines[0], sharing(store.Unlimited, WaitForever), func(*Hold) { time.Sleep(time.Second) })
		}
		time.Sleep(maxPassTime) // the budget is spent
		release(t, reader)
		synctest.Wait()
		if queue := len(p.server.queue("k")); queue != 1+maxAcquiring {
			t.Errorf("%d tokens in the store's queue, want %d", queue, 1+maxAcquiring)
		}
		release(t, other)
		time.Sleep(5 * time.Second)
		p.checkIdle(t)
	})
}

// Two leases go back at the same moment, and one caller waits. Only one of them takes a place
// for it in the store's queue.
func TestReleasesTakeOnePlaceForOneCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
