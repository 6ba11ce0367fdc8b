package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestHandOffSendsAtMostOneCommand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		held  time.Duration // by the first holder, which does not renew
		next  Request
		want  []string      // transitions between the two grants
		fresh bool          // the next holder has another token
		late  time.Duration // the reply to the grant is late
	}{
		{"enough validity", 0, request(WaitForever), nil, false, 0},
		{"a longer TTL", 0, Request{Key: "k", TTL: time.Minute, MaxWaiters: 1000, Wait: WaitForever, Renew: true}, []string{"renew"}, false, 0},
		{"a shorter TTL", 0, Request{Key: "k", TTL: time.Second, MaxWaiters: 1000, Wait: WaitForever, Renew: true}, nil, false, 0},
		{"no renewal", 0, Request{Key: "k", TTL: time.Second, MaxWaiters: 1000, Wait: WaitForever}, []string{"renew"}, false, 0},
		{"the budget is over", time.Second, request(WaitForever), []string{"release"}, true, 0},
		{"little validity", 0, request(WaitForever), []string{"renew"}, false, 7 * time.Second},
	} {
		row(t, test.name, func(t *testing.T) {
			e, s, _ := newEngine()
			s.after.set(delays(test.late, "take"))
			first := request(0)
			first.Renew = false
			h := hold(t, e, first)
			time.Sleep(test.held)
			var between []string
			var token string
			var left time.Duration
			waiting(t, e, test.next, func(next *Hold) {
				between, token, left = s.transitions()[1:], next.Token(), time.Until(next.ValidUntil())
			})
			release(t, h)
			synctest.Wait()
			if !slices.Equal(between, test.want) || (token != h.Token()) != test.fresh {
				t.Errorf("transitions %v, want %v; token %q after %q", between, test.want, token, h.Token())
			}
			if least := test.next.TTL / 3; left < least {
				t.Errorf("%v of validity left, want at least %v", left, least)
			}
		})
	}
}

func TestWaiterIsServedAfterFailedRenewalBeforePass(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(s *fakeStore){
		"fault": func(s *fakeStore) { s.before.set(fails(errDown, "renew")) },
		"taken": func(s *fakeStore) { s.set("k", "another", time.Second) },
	} {
		row(t, name, func(t *testing.T) {
			e, s, _ := newEngine()
			h := hold(t, e, request(0))
			served := false
			waiting(t, e, longer(WaitForever), func(next *Hold) { served = next.Token() != h.Token() })
			fail(s)
			_, _ = h.Release(t.Context())
			sleep(2 * time.Second)
			if !served {
				t.Error("the waiter was not served under a fresh token")
			}
		})
	}
}

func TestOldHoldDoesNotTouchNextHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, events := newEngine()
		h := hold(t, e, request(0))
		waiting(t, e, request(WaitForever), func(next *Hold) {
			release(t, h) // a second release, after the hand-off
			if !next.Alive() || s.value("k") != next.Token() || h.Alive() {
				t.Error("a late release of an earlier holder ended this one")
			}
			if _, err := h.Extend(t.Context(), time.Hour); err != nil || time.Until(next.ValidUntil()) > request(0).TTL {
				t.Error("a late extension of an earlier holder changed this one")
			}
			if h.Context().Err() == nil {
				t.Error("the earlier holder's context lives")
			}
		})
		release(t, h)
		synctest.Wait()
		if got := len(events.of(Released)); got != 2 {
			t.Errorf("%d released events, want 2", got)
		}
	})
}

// A release hands the key to another process. Then this process knows that the key is
// locked: a nowait caller is refused without a command.
func TestKeyIsBusyAfterHandOff(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		held time.Duration
		next Request // of the waiter in this process
	}{
		"the budget is over":                 {time.Second, request(WaitForever)},
		"the renewal before the pass failed": {0, longer(WaitForever)},
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(2)
			h := hold(t, p.engines[0], request(0))
			served := 0
			waiting(t, p.engines[0], test.next, func(*Hold) { served++ })
			waiting(t, p.engines[1], request(WaitForever), func(*Hold) {
				served++
				time.Sleep(10 * time.Second)
			})
			p.stores[0].before.set(fails(errDown, "renew"))
			time.Sleep(test.held)
			release(t, h)
			synctest.Wait()
			if served != 1 {
				t.Fatalf("%d waiters were served: the key was not handed on", served)
			}
			before := len(p.stores[0].transitions())
			refuses(t, p.engines[0], request(0), Busy)
			if n := len(p.stores[0].transitions()) - before; n != 0 {
				t.Errorf("%d commands to refuse a caller, want none", n)
			}
			p.stores[0].before.set(nil)
			sleep(time.Minute)
			if served != 2 {
				t.Errorf("%d waiters were served, want 2", served)
			}
			p.checkIdle(t)
		})
	}
}

// A renewal and a hint of the token show that another process waits. Then the release tells the
// store whether any waits, so that the store can send the short form of the release first.
func TestReleaseKnowsOtherWaiters(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		others func(t *testing.T, p *processes, h *Hold)
		alone  bool
	}{
		"no process waits": {func(*testing.T, *processes, *Hold) {}, true},
		"a renewal reports another process": {func(t *testing.T, p *processes, _ *Hold) {
			p.server.hintsLost = true
			waiting(t, p.engines[1], request(WaitForever), func(*Hold) {})
		}, false},
		"a hint": {func(_ *testing.T, p *processes, h *Hold) { p.stores[0].hint("k", h.Token()) }, false},
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(2)
			h := hold(t, p.engines[0], request(0))
			test.others(t, p, h)
			time.Sleep(request(0).TTL / 2) // one renewal
			var sent []bool
			p.stores[0].before.set(func(transition string, r storetest.AnyRequest) error {
				if transition == "release" {
					sent = append(sent, r.NoWaiters)
				}
				return nil
			})
			release(t, h)
			time.Sleep(5 * time.Second)
			if len(sent) != 1 || sent[0] != test.alone {
				t.Errorf("releases sent as alone: %v, want one as %v", sent, test.alone)
			}
			p.checkIdle(t)
		})
	}
}

func TestBudgetByStoreQueue(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ready := make(chan struct{})
	close(ready)
	for _, test := range []struct {
		name    string
		ready   chan struct{}
		told    time.Time
		waiting int
		before  bool
		want    bool
	}{
		{"no process waits", ready, now.Add(-time.Second), 0, false, true},
		{"no process waits, not listening", nil, now.Add(-time.Second), 0, false, false},
		{"no process waits, subscription not confirmed", make(chan struct{}), now.Add(-time.Second), 0, false, false},
		{"no process waited, hint since", ready, now.Add(time.Second), 0, false, false},
		{"a process waits", ready, now.Add(-time.Second), 1, true, false},
		{"not known", ready, now.Add(-time.Second), -1, false, false},
		{"not known, the old state stays", ready, now.Add(-time.Second), -1, true, true},
	} {
		l := &lease{queue: &queue{waitlist: &waitlist{ready: test.ready, lastHint: test.told}}, leaseState: leaseState{budget: budget{unlimited: test.before}}}
		l.noteStoreQueue(test.waiting, now)
		if l.budget.unlimited != test.want {
			t.Errorf("%s: unlimited: %v", test.name, l.budget.unlimited)
		}
	}
}

// A lease with a short TTL is passed on for a quarter of its TTL at most.
func TestBudgetEndsWithQuarterOfTTL(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	for name, test := range map[string]struct{ ttl, most time.Duration }{
		"a short TTL": {100 * time.Millisecond, 25 * time.Millisecond},
		"a long TTL":  {time.Minute, maxPassTime},
	} {
		b := budget{begun: begun}
		if b.isSpent(test.ttl, begun.Add(test.most-1)) || !b.isSpent(test.ttl, begun.Add(test.most)) {
			t.Errorf("%s: the budget does not end after %v", name, test.most)
		}
	}
}

// The key may be handed back before the reply to the release that handed it on. The hints that
// arrive while a lease is held say nothing about the place in the store's queue that its release takes.
func TestHandOffCostsTwoCommands(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ reply, turn time.Duration }{
		"back before the reply": {10 * time.Millisecond, 0}, "back after it": {0, 100 * time.Millisecond},
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(2)
			h := hold(t, p.engines[0], request(0))
			var served time.Time
			var token string
			waiting(t, p.engines[0], request(WaitForever), func(h *Hold) { served, token = time.Now(), h.Token() })
			waiting(t, p.engines[1], request(WaitForever), func(*Hold) { time.Sleep(test.turn) })
			time.Sleep(time.Second) // the budget is spent
			delaysOnce(p.stores[0], "release", test.reply)
			begun := time.Now()
			release(t, h)
			sleep(time.Second)
			if late := served.Sub(begun); late != test.reply+test.turn || token != "p0:2" {
				t.Errorf("served %v late, as %q", late, token)
			}
			p.stores[0].checkTransitions(t, "take", "release", "enqueue", "release")
			p.checkIdle(t)
		})
	}
}

func TestUnsureReleaseServesAllWaiters(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]int{"kept": 1, "handed": 2} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(others)
			h := hold(t, p.engines[0], request(0))
			served := 0
			for _, e := range p.engines {
				waiting(t, e, request(WaitForever), func(*Hold) { served++ })
			}
			time.Sleep(time.Second) // the budget is spent
			p.stores[0].nextUnsure = true
			release(t, h)
			sleep(3 * time.Second)
			// A hint of a token that was released meanwhile may release it again.
			releases := p.stores[0].count("release")
			if served != others || releases < 2 || releases > 3 || p.stores[0].count("take") != 1 {
				t.Errorf("%d served, transitions %v", served, p.stores[0].transitions())
			}
			p.checkIdle(t)
		})
	}
}
