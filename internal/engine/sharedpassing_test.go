package engine

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Permits pass within a process without a command, as long as no other process waits.
func TestPermitsPassWithoutCommands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		holds := holdAll(t, p.engines[0], sharing(3, 0), 3)
		const n = 900
		var in, served atomic.Int64
		in.Store(3)
		for i := range n {
			waiting(t, p.engines[0], sharing(3, WaitForever), func(*Hold) {
				if now := in.Add(1); now > 3 {
					t.Errorf("%d at once", now)
				}
				if before := int(served.Add(1)) - 1; max(before-i, i-before) > 2 {
					t.Errorf("waiter %d is served after %d others", i, before)
				}
				time.Sleep(time.Millisecond)
				in.Add(-1)
			})
		}
		for _, h := range holds {
			in.Add(-1)
			release(t, h)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if served.Load() != n {
			t.Errorf("%d served", served.Load())
		}
		// The budget of each first lease ends, since the process has not listened before.
		if got := counts(p.stores[0]); got["enqueue"] != 3 || got["release"] > 6 {
			t.Errorf("transitions %v", got)
		}
		if passed := p.events[0].of(Acquired)[n]; passed.Handover != Passed {
			t.Errorf("event %+v", passed)
		}
		p.checkIdle(t)
	})
}

// Two processes pass their permits for the time of the budget.
func TestProcessesTakeTurnsWithPermits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		holds := holdAll(t, p.engines[0], sharing(2, 0), 2)
		var served [2]atomic.Int64
		var before atomic.Int64 // of the first process, when the second one had its first turn
		for range 500 {
			for i, e := range p.engines {
				waiting(t, e, sharing(2, WaitForever), func(*Hold) {
					time.Sleep(time.Millisecond)
					if served[i].Add(1) == 1 && i == 1 {
						before.Store(served[0].Load())
					}
				})
			}
		}
		for _, h := range holds {
			release(t, h)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if first, second := served[0].Load(), served[1].Load(); first != 500 || second != 500 || before.Load() > 2*maxPasses+2 {
			t.Errorf("served %d and %d; the second process after %d of the first", first, second, before.Load())
		}
		p.checkIdle(t)
	})
}

// A writer of the process ends the passes of shared leases to readers that came later, and a
// reader that came before it is served before it.
func TestWaitingWriterEndsPassesOfSharedLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], sharing(1, 0))
		h.shard.mu.Lock()
		h.lease.budget.unlimited = true // no other process waits
		h.shard.mu.Unlock()
		var order []string
		wait := func(name string, limit store.Limit) {
			waiting(t, p.engines[0], sharing(limit, WaitForever), func(*Hold) { order = append(order, name) })
		}
		wait("before", 1)
		wait("writer", store.Exclusive)
		wait("after", 1)
		wait("after", 1)
		release(t, h)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if want := []string{"before", "writer", "after", "after"}; !slices.Equal(order, want) {
			t.Errorf("served in the order %v, want %v", order, want)
		}
		p.checkIdle(t)
	})
}

// Readers that come back without end do not keep a writer of another process waiting.
//
//faults:row 54
func TestWriterOfAnotherProcessIsNotStarvedByReaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		var over atomic.Bool
		for range 5 {
			go func() {
				for !over.Load() {
					h := hold(t, p.engines[0], sharing(store.Unlimited, WaitForever))
					time.Sleep(10 * time.Millisecond)
					release(t, h)
				}
			}()
			time.Sleep(time.Millisecond)
		}
		begun := time.Now()
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) { over.Store(true) })
		time.Sleep(time.Second)
		synctest.Wait()
		if !over.Load() {
			t.Fatalf("the writer waits for %v", time.Since(begun))
		}
		p.checkIdle(t)
	})
}

// Shared leases that pass without limit go back to the store once others wait, also those
// that no hint has named.
func TestHintOfOneSharedLeaseEndsPassesOfAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		holds := holdAll(t, p.engines[0], sharing(2, 0), 2)
		for _, h := range holds {
			h.shard.mu.Lock()
			h.lease.budget.unlimited = true
			h.shard.mu.Unlock()
		}
		time.Sleep(time.Second)
		p.stores[0].hint("k", holds[0].Token()) // others wait
		time.Sleep(time.Second)
		for range 2 * maxPasses {
			waiting(t, p.engines[0], sharing(2, WaitForever), func(*Hold) { time.Sleep(10 * time.Millisecond) })
		}
		release(t, holds[1])
		time.Sleep(100 * time.Millisecond)
		if got := counts(p.stores[0])["release"]; got == 0 {
			t.Error("the lease that was not named still passes")
		}
		release(t, holds[0])
		time.Sleep(10 * time.Second)
		p.checkIdle(t)
	})
}

// A reader that is refused beside readers of its process shows that others wait. So passes
// end in time, also if no hint arrives.
func TestRefusedReaderEndsPassesOfItsProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], sharing(store.Unlimited, 0))
		h.shard.mu.Lock()
		h.lease.budget.unlimited = true
		h.shard.mu.Unlock()
		p.stores[0].hint = func(string, string) {}
		var written time.Time
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) { written = time.Now() })
		for range 300 {
			waiting(t, p.engines[0], sharing(store.Unlimited, WaitForever), func(*Hold) { time.Sleep(10 * time.Millisecond) })
		}
		begun := time.Now()
		release(t, h)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if took := written.Sub(begun); written.IsZero() || took > maxPassTime+20*time.Millisecond {
			t.Errorf("the writer was served after %v", took)
		}
		p.checkIdle(t)
	})
}

// A waiter to which a lease passes gives up its place in the store's queue at once, and a
// release takes a place only for a waiter that has none.
func TestSharedWaitersHaveOnePlaceEach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		first, other := hold(t, p.engines[0], sharing(2, 0)), hold(t, p.engines[1], sharing(2, 0))
		waiting(t, p.engines[0], sharing(2, WaitForever), func(*Hold) { time.Sleep(time.Second) })
		if queue := p.server.queue("k"); len(queue) != 1 {
			t.Fatalf("the queue is %v", queue)
		}
		release(t, first)
		synctest.Wait()
		if queue := p.server.queue("k"); len(queue) != 0 {
			t.Errorf("after the pass the queue is %v", queue)
		}
		p.stores[0].before.set(func(_ string, r storetest.AnyRequest) error {
			if r.Rejoin != "" {
				t.Error("a release rejoins for a waiter that has a place")
			}
			return nil
		})
		waiting(t, p.engines[0], sharing(2, WaitForever), func(*Hold) {})
		time.Sleep(2 * time.Second)
		release(t, other)
		p.checkIdle(t)
	})
}

// A caller that knows of contention takes a place in the store's queue with its first command.
func TestSharedCallerBehindWaitersJoinsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		writer := hold(t, p.engines[0], request(0))
		for i, want := range []int{2, 3, 4} {
			waiting(t, p.engines[1], sharing(store.Unlimited, WaitForever), func(*Hold) {})
			if got := len(p.stores[1].transitions()); got != want {
				t.Errorf("%d commands for %d waiters, want %d", got, i+1, want)
			}
		}
		if got := len(p.events[1].of(Waiting)); got != 3 {
			t.Errorf("%d events", got)
		}
		release(t, writer)
		time.Sleep(time.Second)
		p.checkIdle(t)
	})
}

// A permanent fault refuses all waiters, and their places are given up at once.
func TestPermanentFaultEndsAllSharedQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		writer := hold(t, p.engines[0], request(0))
		var refused []<-chan error
		for range 5 {
			refused = append(refused, acquiring(t, p.engines[1], sharing(store.Unlimited, WaitForever)))
		}
		failed := false
		p.stores[1].before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "enqueue" && !failed {
				failed = true
				return &store.Fault{Err: errors.New("no permission")}
			}
			return nil
		})
		p.stores[1].hint("k", p.server.queue("k")[0])
		synctest.Wait()
		if queue := p.server.queue("k"); len(queue) != 0 {
			t.Errorf("the queue is %v", queue)
		}
		for _, r := range refused {
			if err := <-r; reasonOf(t, err) != Unavailable {
				t.Error(err)
			}
		}
		release(t, writer)
		p.checkIdle(t)
	})
}

// A dead exclusive token in the key is released by a shared caller that finds it.
func TestSharedCallerReleasesDeadExclusiveToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		dead := deadToken(t, p.engines[0])
		p.server.set("k", dead, time.Hour)
		release(t, hold(t, p.engines[0], sharing(2, 0)))
		p.checkIdle(t)
	})
}

// A reader of the process is not starved by writers of the process that pass a lease, though
// no other process waits.
//
//faults:row 54
func TestReaderIsNotStarvedByPassesOfWriters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], request(0))
		h.shard.mu.Lock()
		h.lease.budget.unlimited = true
		h.shard.mu.Unlock()
		hint := p.stores[0].hint
		p.stores[0].hint = func(key, token string) {
			if limitOf(token).IsShared() { // the writers learn of the reader from their own process
				hint(key, token)
			}
		}
		written, before := 0, -1
		for range 900 {
			waiting(t, p.engines[0], request(WaitForever), func(*Hold) {
				time.Sleep(time.Millisecond)
				written++
			})
		}
		waiting(t, p.engines[0], sharing(store.Unlimited, WaitForever), func(*Hold) { before = written })
		release(t, h)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if before < 0 || before > maxPasses+1 || written != 900 {
			t.Errorf("the reader was served after %d of %d writers", before, written)
		}
		p.checkIdle(t)
	})
}

// In an outage the store can serve no writer, so leases pass on.
func TestSharedLeasesPassInAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		long := sharing(2, 0)
		long.TTL = time.Minute
		holds := holdAll(t, p.engines[0], long, 2)
		var served atomic.Int64
		wait := func(limit store.Limit) {
			go func() {
				h := hold(t, p.engines[0], sharing(limit, WaitForever))
				served.Add(1)
				_, _ = h.Release(t.Context()) // fails in the outage
			}()
			synctest.Wait()
		}
		wait(store.Exclusive)
		wait(2)
		p.stores[0].setDown(true)
		time.Sleep(failFast)
		wait(2) // needs no command
		if _, err := p.engines[0].Acquire(t.Context(), sharing(2, 0)); reasonOf(t, err) != Busy {
			t.Errorf("a try behind two leases: %v", err)
		}
		for _, r := range []Request{sharing(3, WaitForever), sharing(store.Unlimited, WaitForever)} {
			if _, err := p.engines[0].Acquire(t.Context(), r); reasonOf(t, err) != Unavailable {
				t.Errorf("limit %d: %v", r.Limit, err)
			}
		}
		_, _ = holds[0].Release(t.Context())
		synctest.Wait()
		if n := served.Load(); n != 2 {
			t.Errorf("%d are served in the outage, want 2", n)
		}
		p.stores[0].setDown(false)
		_, _ = holds[1].Release(t.Context())
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := served.Load(); n != 3 {
			t.Errorf("%d served", n)
		}
		p.checkIdle(t)
	})
}
