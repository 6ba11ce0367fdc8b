package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// delaysOnce delays the first reply to a transition.
func delaysOnce(s *fakeStore, transition string, d time.Duration) {
	delayed := false
	s.after.set(func(name string, _ storetest.AnyRequest) error {
		if name == transition && !delayed {
			delayed = true
			time.Sleep(d)
		}
		return nil
	})
}

// A lease cannot be used if its validity is over when the reply arrives. The waiter gets
// a lease under a fresh token, and before the end of its wait.
func TestWaiterIsServedAfterReplyOutlivedItsLease(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		slow  string        // the transition with a slow first reply
		delay time.Duration // longer than the lease of the reply
		held  time.Duration // by the first holder
		next  Request
		// releases are the releases in the end: of the dead token, if it has the key, and of
		// the last lease.
		releases int
	}{
		{
			"a renewal before a pass", "renew", 2 * time.Minute, 0,
			Request{Key: "k", TTL: time.Minute, MaxWaiters: 1000, Wait: time.Hour, Renew: true},
			2,
		},
		// The key stays with the process, under the token that rejoined.
		{"a release that keeps the key", "release", time.Minute, time.Second, request(time.Hour), 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(1)
				h := hold(t, p.engines[0], request(0))
				var token string
				var served time.Time
				var left time.Duration
				waiting(t, p.engines[0], test.next, func(next *Hold) {
					token, served, left = next.Token(), time.Now(), time.Until(next.ValidUntil())
				})
				time.Sleep(test.held) // then the budget of passes is spent
				delaysOnce(p.stores[0], test.slow, test.delay)
				begun := time.Now()
				h.BeginRelease()
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				if n := p.stores[0].count(test.slow); n == 0 {
					t.Fatalf("no %s was sent: the test shows nothing", test.slow)
				}
				if token == "" || token == h.Token() {
					t.Fatalf("served under the token %q after %q", token, h.Token())
				}
				if late := served.Sub(begun) - test.delay; late < 0 || late > time.Second {
					t.Errorf("served %v after the slow reply", late)
				}
				if least := test.next.TTL / 2; left < least {
					t.Errorf("%v of validity left, want at least %v", left, least)
				}
				if n := p.stores[0].count("release"); n != test.releases {
					t.Errorf("%d releases, want %d", n, test.releases)
				}
				p.checkIdle(t)
			})
		})
	}
}
