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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
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
				p.stores[1].before.set(func(transition string, _ storetest.AnyRequest) error {
					if transition == "enqueue" {
						time.Sleep(delay)
					}
					return nil
				})
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
		})
	}
}

// A lease that is granted to a process in which no caller waits any more goes back.
func TestSharedGrantWithoutCallerIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		p.stores[0].after.set(func(string, storetest.AnyRequest) error { time.Sleep(50 * time.Millisecond); return nil })
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			go func() { _, _ = p.engines[0].Acquire(ctx, sharing(5, WaitForever)) }()
		}
		synctest.Wait()
		cancel()
		time.Sleep(time.Second)
		p.checkIdle(t)
	})
}

// Close refuses the waiters, waits for all holders of shared leases, and reports them.
func TestCloseWaitsForSharedHolders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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

// A Close that gives up ends all shared leases.
func TestCloseThatGivesUpEndsSharedLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, events := newEngine()
		holds := holdAll(t, e, sharing(store.Unlimited, 0), 3)
		if err := e.Close(canceledContext()); err == nil {
			t.Error("no error")
		}
		if lost := events.of(Lost); len(lost) != 3 || lost[0].Loss != Closed {
			t.Errorf("losses %+v", lost)
		}
		for _, h := range holds {
			if h.Alive() {
				t.Error("a lease is alive")
			}
			_, _ = h.Release(t.Context())
		}
		time.Sleep(time.Minute)
		if e.queueCount() != 0 || s.value("k") != "" {
			t.Errorf("left: %d queues, key %q", e.queueCount(), s.value("k"))
		}
	})
}

// The waiters of one key with all limits count together.
func TestWaitersOfAllLimitsCountTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
			if _, err := e.Acquire(t.Context(), atMost(limit)); reasonOf(t, err) != QueueFull {
				t.Errorf("limit %d: %v", limit, err)
			}
		}
		release(t, writer)
		time.Sleep(5 * time.Second)
		p.checkIdle(t)
		if lists := len(e.shardOf("k").queues); lists != 0 {
			t.Errorf("%d queues are left", lists)
		}
	})
}

// A waiter is refused at the end of its wait if the store does not answer, and a try at once.
func TestSharedWaiterWithoutStoreEndsWithItsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		p.stores[0].before.set(func(string, storetest.AnyRequest) error { return errDown })
		for range 3 {
			if _, err := p.engines[0].Acquire(t.Context(), sharing(2, 0)); reasonOf(t, err) != Unavailable {
				t.Errorf("a try: %v", err)
			}
		}
		begun := time.Now()
		if _, err := p.engines[0].Acquire(t.Context(), sharing(2, time.Second)); reasonOf(t, err) != Unavailable || time.Since(begun) != time.Second {
			t.Errorf("a waiter: %v after %v", err, time.Since(begun))
		}
		p.stores[0].before.set(nil)
		time.Sleep(time.Minute)
		p.checkIdle(t)
	})
}

// A try beside a waiter that was refused before, and whose last request failed, asks the store:
// it is not known any more that others hold the key.
func TestTryAfterFaultOfWaiterAsksStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		writer := hold(t, p.engines[0], request(0))
		waiting(t, p.engines[1], sharing(store.Unlimited, WaitForever), func(*Hold) {})
		if _, err := p.engines[1].Acquire(t.Context(), sharing(store.Unlimited, 0)); reasonOf(t, err) != Busy {
			t.Errorf("a try behind a waiter: %v", err)
		}
		p.stores[1].before.set(func(string, storetest.AnyRequest) error { return errDown })
		p.stores[1].hint("k", "")
		synctest.Wait()
		if _, err := p.engines[1].Acquire(t.Context(), sharing(store.Unlimited, 0)); reasonOf(t, err) != Unavailable {
			t.Errorf("a try behind a waiter whose request failed: %v", err)
		}
		p.stores[1].before.set(nil)
		release(t, writer)
		time.Sleep(5 * time.Second)
		p.checkIdle(t)
	})
}

// Tries during an outage are refused by the faults of their own requests.
func TestTriesAtOnceAreRefusedByFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
		p.stores[0].before.set(nil)
		time.Sleep(time.Minute)
		p.checkIdle(t)
	})
}
