package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(2)
				h := hold(t, p.engines[0], request(0))
				served := 0
				waiting(t, p.engines[0], test.next, func(*Hold) { served++ })
				waiting(t, p.engines[1], request(WaitForever), func(*Hold) {
					served++
					time.Sleep(10 * time.Second)
				})
				p.stores[0].before.set(func(transition string, _ storetest.AnyRequest) error {
					if transition == "renew" {
						return errDown
					}
					return nil
				})
				time.Sleep(test.held)
				release(t, h)
				synctest.Wait()
				if served != 1 {
					t.Fatalf("%d waiters were served: the key was not handed on", served)
				}
				before := len(p.stores[0].transitions())
				if _, err := p.engines[0].Acquire(t.Context(), request(0)); reasonOf(t, err) != Busy {
					t.Errorf("refused with %v, want busy", err)
				}
				if n := len(p.stores[0].transitions()) - before; n != 0 {
					t.Errorf("%d commands to refuse a caller, want none", n)
				}
				p.stores[0].before.set(nil)
				time.Sleep(time.Minute)
				synctest.Wait()
				if served != 2 {
					t.Errorf("%d waiters were served, want 2", served)
				}
				p.checkIdle(t)
			})
		})
	}
}

// A renewal reports how many processes wait. Then the release tells the store whether
// any waits, so that the store can send the short form of the release first.
func TestReleaseKnowsOtherWaiters(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]bool{"no process waits": false, "another process waits": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(2)
				h := hold(t, p.engines[0], request(0))
				if others {
					waiting(t, p.engines[1], request(WaitForever), func(*Hold) {})
				}
				time.Sleep(request(0).TTL / 2) // one renewal
				var sent []bool
				p.stores[0].before.set(func(transition string, r storetest.AnyRequest) error {
					if transition == "release" {
						sent = append(sent, r.NoWaiters)
					}
					return nil
				})
				release(t, h)
				if len(sent) != 1 || sent[0] == others {
					t.Errorf("releases sent as alone: %v, want one as %v", sent, !others)
				}
				p.checkIdle(t)
			})
		})
	}
}

// A hint of the token that holds the key means that another process waits.
func TestReleaseKnowsOtherWaitersByHint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		s.hint("k", h.Token())
		alone := false
		s.before.set(func(_ string, r storetest.AnyRequest) error {
			alone = r.NoWaiters
			return nil
		})
		release(t, h)
		if alone {
			t.Error("the release is sent as if no process waits")
		}
	})
}
