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
	tests := []struct {
		name  string
		held  time.Duration // by the first holder, which does not renew
		next  Request
		want  []string // transitions between the two grants
		fresh bool     // the next holder has another token
	}{
		{"enough validity", 0, request(WaitForever), nil, false},
		{"a longer TTL", 0, Request{Key: "k", TTL: time.Minute, MaxWaiters: 1000, Wait: WaitForever, Renew: true}, []string{"renew"}, false},
		{"a shorter TTL", 0, Request{Key: "k", TTL: time.Second, MaxWaiters: 1000, Wait: WaitForever, Renew: true}, nil, false},
		{"no renewal", 0, Request{Key: "k", TTL: time.Second, MaxWaiters: 1000, Wait: WaitForever}, []string{"renew"}, false},
		{"the budget is over", time.Second, request(WaitForever), []string{"release"}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, s, _ := newEngine()
				first := request(0)
				first.Renew = false
				h := hold(t, e, first)
				time.Sleep(test.held)
				var between []string
				var token string
				var left time.Duration
				waiting(t, e, test.next, func(next *Hold) {
					between = s.transitions()[1:]
					token = next.Token()
					left = time.Until(next.ValidUntil())
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
		})
	}
}

func TestPassWithLittleValidityRenewsFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.after.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "take" {
				time.Sleep(7 * time.Second) // the reply to the grant is late
			}
			return nil
		})
		first := request(0)
		first.Renew = false // otherwise a renewal would be due at once
		h := hold(t, e, first)
		if left := time.Until(h.ValidUntil()); left > request(0).TTL/3 {
			t.Fatalf("%v left: the test shows nothing", left)
		}
		var token string
		var left time.Duration
		waiting(t, e, request(WaitForever), func(next *Hold) { token, left = next.Token(), time.Until(next.ValidUntil()) })
		release(t, h)
		synctest.Wait()
		if token != h.Token() || left != validity {
			t.Errorf("token %q with %v left", token, left)
		}
	})
}

func TestWaiterIsServedAfterFailedRenewalBeforePass(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(s *fakeStore){
		"fault": func(s *fakeStore) {
			s.before.set(func(transition string, _ storetest.AnyRequest) error {
				if transition == "renew" {
					return errDown
				}
				return nil
			})
		},
		"taken": func(s *fakeStore) { s.set("k", "another", time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, s, _ := newEngine()
				h := hold(t, e, request(0))
				longer := request(WaitForever)
				longer.TTL = time.Minute
				served := false
				waiting(t, e, longer, func(next *Hold) { served = next.Token() != h.Token() })
				fail(s)
				_, _ = h.Release(t.Context())
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if !served {
					t.Error("the waiter was not served under a fresh token")
				}
			})
		})
	}
}

func TestOldHoldDoesNotTouchNextHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
