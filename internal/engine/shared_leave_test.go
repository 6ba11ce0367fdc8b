package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Waiters that leave take the places in the store's queue that are not needed any more with
// them, while they are asked for and afterwards. The first waiters keep theirs.
func TestLeavingSharedWaitersLeaveStoreQueue(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]time.Duration{"during the pause": 0, "during a request": 100 * time.Millisecond} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(2)
			writer := hold(t, p.engines[0], request(0))
			ctx, cancel := context.WithCancel(t.Context())
			for i := range 10 {
				if i%2 == 0 {
					waiting(t, p.engines[1], sharing(store.Unlimited, WaitForever), func(*Hold) {})
					continue
				}
				go func() {
					if _, err := p.engines[1].Acquire(ctx, sharing(store.Unlimited, WaitForever)); reasonOf(t, err) != TimedOut {
						t.Errorf("a caller that leaves: %v", err)
					}
				}()
				synctest.Wait()
			}
			first := p.server.queue("k")[:5]
			p.stores[1].before.set(delays(delay, "enqueue"))
			p.stores[1].hint("k", "") // all ask again
			synctest.Wait()
			cancel()
			time.Sleep(time.Second / 2)
			if queue := p.server.queue("k"); len(queue) != 5 || delay == 0 && queue[4] != first[4] {
				t.Errorf("the queue is %v, want %v", queue, first)
			}
			release(t, writer)
			time.Sleep(5 * time.Second)
			p.checkIdle(t)
		})
	}
}

// Close refuses the waiters, waits for all holders of shared leases, and reports them.
func TestCloseWaitsForSharedHolders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		e := p.engines[0]
		holds := holdAll(t, e, sharing(3, 0), 3)
		refused := acquiring(t, e, sharing(3, WaitForever))
		closed := make(chan error, 1)
		go func() { closed <- e.Close(t.Context()) }()
		synctest.Wait()
		if reason := reasonOf(t, <-refused); reason != ClosedDown {
			t.Errorf("the waiter: %v", reason)
		}
		if closing := p.events[0].of(Closing); len(closing) != 1 || closing[0].Holds != 3 || !closing[0].Shared {
			t.Errorf("events %+v", closing)
		}
		for _, h := range holds {
			if len(closed) != 0 {
				t.Error("closed before the holders have released")
			}
			release(t, h)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		p.checkIdle(t)
	})
}

// The waiters of one key with all limits count together.
func TestWaitersOfAllLimitsCountTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		e := p.engines[1]
		atMost := func(limit store.Limit) Request {
			r := sharing(limit, WaitForever)
			r.MaxWaiters = 6
			return r
		}
		writer := hold(t, p.engines[0], request(0))
		for _, limit := range []store.Limit{store.Exclusive, store.Unlimited, 3} {
			for range 2 {
				waiting(t, e, atMost(limit), func(*Hold) {})
			}
		}
		for _, limit := range []store.Limit{store.Exclusive, store.Unlimited, 3, 4} {
			refuses(t, e, atMost(limit), QueueFull)
		}
		release(t, writer)
		time.Sleep(5 * time.Second)
		p.checkIdle(t)
		if lists := len(e.shardOf("k").queues); lists != 0 {
			t.Errorf("%d queues are left", lists)
		}
	})
}

// A try beside a waiter that was refused before, and whose last request failed, asks the store:
// it is not known any more that others hold the key.
func TestTryAfterFaultOfWaiterAsksStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		writer := hold(t, p.engines[0], request(0))
		waiting(t, p.engines[1], sharing(store.Unlimited, WaitForever), func(*Hold) {})
		refuses(t, p.engines[1], sharing(store.Unlimited, 0), Busy)
		p.stores[1].before.set(fails(errDown))
		p.stores[1].hint("k", "")
		synctest.Wait()
		refuses(t, p.engines[1], sharing(store.Unlimited, 0), Unavailable)
		p.stores[1].before.set(nil)
		release(t, writer)
		time.Sleep(5 * time.Second)
		p.checkIdle(t)
	})
}

// During an outage tries are refused by the faults of their own requests, and a waiter at the end
// of its wait.
func TestSharedCallersInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		p.stores[0].before.set(func(string, storetest.AnyRequest) error { time.Sleep(time.Millisecond); return errDown })
		var tries []<-chan error
		for range 10 {
			tries = append(tries, acquiring(t, p.engines[0], sharing(2, 0)))
		}
		time.Sleep(bound + time.Millisecond)
		for i, try := range tries {
			select {
			case err := <-try:
				if reasonOf(t, err) != Unavailable {
					t.Errorf("try %d: %v", i, err)
				}
			default:
				t.Errorf("try %d still waits", i)
			}
		}
		begun := time.Now()
		if refuses(t, p.engines[0], sharing(2, time.Second), Unavailable); time.Since(begun) != time.Second {
			t.Errorf("a waiter is refused after %v", time.Since(begun))
		}
		p.stores[0].before.set(nil)
		time.Sleep(time.Minute)
		p.checkIdle(t)
	})
}
