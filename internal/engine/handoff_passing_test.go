package engine

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// While a lease is renewed before a pass it has no holder. Close gives up in that
// moment: the holder that has released the lease gets no loss.
func TestCloseDuringRenewalBeforePassLosesNoHolder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, events := newEngine()
		h := hold(t, e, request(0))
		refused := acquiring(t, e, longer(WaitForever))
		s.before.set(delays(time.Second, "renew"))
		release(t, h)
		if err := e.Close(canceledContext()); err == nil {
			t.Error("closed during a renewal")
		}
		if reason := reasonOf(t, <-refused); reason != ClosedDown {
			t.Errorf("the waiter is refused with %v", reason)
		}
		time.Sleep(time.Minute)
		if lost := events.of(Lost); len(lost) != 0 {
			t.Errorf("lost %+v", lost)
		}
		if err := e.Close(t.Context()); err != nil || s.value("k") != "" || e.queueCount() != 0 {
			t.Errorf("close: %v; key %q, %d queues", err, s.value("k"), e.queueCount())
		}
	})
}

// A command of a hand-off fails, and the next command hangs. If the wait of a
// waiter ends meanwhile, it is refused because of the fault, not because of contention.
func TestFaultOfHandOffReachesWaiter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fails string
		held  time.Duration
		next  Request
	}{
		"the renewal before a pass": {"renew", 0, longer(2 * time.Second)},
		"the release":               {"release", time.Second, request(2 * time.Second)}, // the budget is spent
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(1)
			h := hold(t, p.engines[0], request(0))
			refused := acquiring(t, p.engines[0], test.next)
			time.Sleep(test.held)
			p.stores[0].before.set(func(transition string, _ storetest.AnyRequest) error {
				if transition == test.fails {
					return errDown
				}
				time.Sleep(3 * time.Second)
				return nil
			})
			h.BeginRelease()
			err := <-refused
			if reason := reasonOf(t, err); reason != Unavailable {
				t.Errorf("refused with %v, want %v", reason, Unavailable)
			}
			var refusal *Refusal
			if errors.As(err, &refusal) && !errors.Is(refusal.Fault, errDown) {
				t.Errorf("fault %v, want %v", refusal.Fault, errDown)
			}
			p.stores[0].before.set(nil)
			time.Sleep(time.Minute)
			p.checkIdle(t)
		})
	}
}

// The renewal before a pass finds the key taken. The schedule drops the lease, so
// that no timer keeps the engine in memory after Close.
func TestCloseAfterFailedPassLeavesNoTimer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		e := p.engines[0]
		h := hold(t, e, request(0))
		waiting(t, e, longer(WaitForever), func(*Hold) {})
		p.server.set("k", "another", time.Second)
		release(t, h)
		time.Sleep(3 * time.Second)
		p.checkIdle(t)
		if got := p.stores[0].transitions(); !slices.Equal(got[:3], []string{"take", "renew", "enqueue"}) {
			t.Errorf("transitions %v: a lease that is gone is not released", got)
		}
		closes(t, e)
		if e.schedule.timer.Stop() {
			t.Error("the timer of the schedule was running after Close")
		}
	})
}

// The renewal of a lease is due, but must wait until other renewals end. Then the lease
// is passed on. A successor with renewal keeps the place, and a successor without
// renewal is not renewed.
func TestPassWhileLeaseWaitsForRenewal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		renew                bool
		afterPass, afterTurn int // renewals sent by then
	}{
		"with renewal":    {true, 0, 1},
		"without renewal": {false, 1, 1}, // one before the pass
	} {
		row(t, name, func(t *testing.T) {
			e, s, _ := newEngine()
			const outage = 2 * time.Second
			fillRenewals(t, e, s, outage)
			h := hold(t, e, request(0))
			granted := time.Now()
			passed := make(chan *Hold, 1)
			next := request(WaitForever)
			next.Renew = test.renew
			go func() { passed <- hold(t, e, next) }()
			synctest.Wait()
			passesUnlimited(h)
			time.Sleep(time.Until(granted.Add(request(0).TTL/3 + outage/2)))
			if n := len(renewalsOf(s, h.Token())); n != 0 {
				t.Fatalf("%d renewals: the lease does not wait for its renewal", n)
			}
			release(t, h)
			successor := <-passed
			synctest.Wait()
			if n := len(renewalsOf(s, h.Token())); n != test.afterPass {
				t.Errorf("%d renewals at the pass, want %d", n, test.afterPass)
			}
			time.Sleep(outage)
			if n := len(renewalsOf(s, h.Token())); n != test.afterTurn {
				t.Errorf("%d renewals after the outage, want %d", n, test.afterTurn)
			}
			if !test.renew {
				<-successor.Context().Done()
				if n := len(renewalsOf(s, h.Token())); n != test.afterTurn {
					t.Errorf("%d renewals at the end of the lease, want %d", n, test.afterTurn)
				}
			}
			successor.BeginRelease()
			_ = e.Close(canceledContext())
			time.Sleep(time.Hour)
		})
	}
}

// The caller for which the queue asked has left, and the lease is renewed for the next
// one. Meanwhile a nowait caller is refused at once. The queue is reused afterwards.
func TestKeyIsBusyDuringRenewalBeforeGrant(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.after.set(delays(bound / 2))
		cancel := leaving(t, e, request(WaitForever))
		waiting(t, e, longer(WaitForever), func(*Hold) {})
		cancel()
		time.Sleep(bound/2 + time.Millisecond)
		begun := time.Now()
		if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Busy || time.Since(begun) > 0 {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		time.Sleep(time.Second)
		s.checkTransitions(t, "take", "renew", "release")
		shard := e.shardOf("k")
		shard.mu.Lock()
		defer shard.mu.Unlock()
		if n := len(shard.recycled); n != 1 {
			t.Errorf("%d queues are kept for reuse", n)
		}
	})
}
