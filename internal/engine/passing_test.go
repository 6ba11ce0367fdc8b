package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// longer returns a request with a TTL that makes the engine renew a lease of the other
// tests before it is passed on.
func longer(wait time.Duration) Request {
	r := request(wait)
	r.TTL = time.Minute
	return r
}

// While a lease is renewed before a pass it has no holder. Close gives up in that
// moment: the holder that has released the lease gets no loss.
func TestCloseDuringRenewalBeforePassLosesNoHolder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, events := newEngine()
		h := hold(t, e, request(0))
		refused := make(chan error, 1)
		go func() {
			_, err := e.Acquire(t.Context(), longer(WaitForever))
			refused <- err
		}()
		synctest.Wait()
		s.before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "renew" {
				time.Sleep(time.Second)
			}
			return nil
		})
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(1)
				h := hold(t, p.engines[0], request(0))
				refused := make(chan error, 1)
				go func() {
					_, err := p.engines[0].Acquire(t.Context(), test.next)
					refused <- err
				}()
				synctest.Wait()
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
		})
	}
}

// The renewal before a pass finds the key taken. The schedule drops the lease, so
// that no timer keeps the engine in memory after Close.
func TestCloseAfterFailedPassLeavesNoTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
		if err := e.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, s, _ := newEngine()
				const outage = 2 * time.Second
				s.before.set(func(transition string, r storetest.AnyRequest) error {
					if transition == "renew" && strings.HasPrefix(r.Key, "slow") {
						time.Sleep(outage)
					}
					return nil
				})
				slow := request(0)
				for i := range maxRenewals {
					slow.Key = "slow" + strconv.Itoa(i)
					hold(t, e, slow)
				}
				time.Sleep(20 * time.Millisecond) // those leases are due before
				h := hold(t, e, request(0))
				granted := time.Now()
				passed := make(chan *Hold, 1)
				next := request(WaitForever)
				next.Renew = test.renew
				go func() {
					successor, err := e.Acquire(t.Context(), next)
					if err != nil {
						t.Errorf("waiter: %v", err)
					}
					passed <- successor
				}()
				synctest.Wait()
				h.shard.mu.Lock()
				h.lease.budget.unlimited = true // otherwise the lease would go back to the store
				h.shard.mu.Unlock()
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
		})
	}
}

// renewalsOf returns when renewals of a token were applied.
func renewalsOf(s *fakeStore, token string) (at []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.transition == "renew" && c.token == token {
			at = append(at, c.at)
		}
	}
	return at
}

// The caller for which the queue asked has left, and the lease is renewed for the next
// one. Meanwhile a nowait caller is refused at once. The queue is reused afterwards.
func TestKeyIsBusyDuringRenewalBeforeGrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.after.set(func(string, storetest.AnyRequest) error { time.Sleep(bound / 2); return nil })
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = e.Acquire(ctx, request(WaitForever)) }()
		synctest.Wait()
		waiting(t, e, longer(WaitForever), func(*Hold) {})
		cancel()
		time.Sleep(bound/2 + time.Millisecond)
		begun := time.Now()
		if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Busy || time.Since(begun) > 0 {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		time.Sleep(time.Second)
		if want := []string{"take", "renew", "release"}; !slices.Equal(s.transitions(), want) {
			t.Errorf("transitions %v, want %v", s.transitions(), want)
		}
		shard := e.shardOf("k")
		shard.mu.Lock()
		defer shard.mu.Unlock()
		if n := len(shard.recycled); n != 1 {
			t.Errorf("%d queues are kept for reuse", n)
		}
	})
}
