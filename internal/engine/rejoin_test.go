package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestClaimTimes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ bound, ttl, want time.Duration }{
		{500 * time.Millisecond, 10 * time.Second, 2 * time.Second}, // four commands
		{100 * time.Millisecond, 10 * time.Second, time.Second},
		{500 * time.Millisecond, 400 * time.Millisecond, 400 * time.Millisecond},
		{10 * time.Millisecond, 400 * time.Millisecond, 400 * time.Millisecond},
	} {
		e := New(newFakeStore(newFakeServer(), "me"), Config{Bound: test.bound})
		if got := e.claimOf(test.ttl); got != test.want {
			t.Errorf("command bound %v, TTL %v: claim %v, want %v", test.bound, test.ttl, got, test.want)
		}
	}
}

// The key may be handed back before the reply to the release that handed it on.
func TestHintOfRejoinedTokenBeforeReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], request(0))
		var served time.Time
		var token string
		waiting(t, p.engines[0], request(WaitForever), func(h *Hold) { served, token = time.Now(), h.Token() })
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) {})
		time.Sleep(time.Second) // the budget is spent
		p.stores[0].after.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "release" && p.stores[0].count("release") == 1 {
				time.Sleep(10 * time.Millisecond) // the other process has its turn meanwhile
			}
			return nil
		})
		begun := time.Now()
		release(t, h)
		time.Sleep(time.Second)
		synctest.Wait()
		if late := served.Sub(begun); late != 10*time.Millisecond || token != "p0:2" {
			t.Errorf("served %v late, as %q", late, token)
		}
		if want := []string{"take", "release", "enqueue", "release"}; !slices.Equal(p.stores[0].transitions(), want) {
			t.Errorf("transitions %v, want %v", p.stores[0].transitions(), want)
		}
		p.checkIdle(t)
	})
}

func TestUnsureReleaseServesAllWaiters(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]int{"kept": 1, "handed": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(others)
				h := hold(t, p.engines[0], request(0))
				served := 0
				for _, e := range p.engines {
					waiting(t, e, request(WaitForever), func(*Hold) { served++ })
				}
				time.Sleep(time.Second) // the budget is spent
				p.stores[0].nextUnsure = true
				release(t, h)
				time.Sleep(3 * time.Second)
				synctest.Wait()
				// A hint of a token that was released meanwhile may release it again.
				releases := p.stores[0].count("release")
				if served != others || releases < 2 || releases > 3 || p.stores[0].count("take") != 1 {
					t.Errorf("%d served, transitions %v", served, p.stores[0].transitions())
				}
				p.checkIdle(t)
			})
		})
	}
}

// A nowait caller takes no place in the store's queue.
func TestNowaitCallerDoesNotRejoin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], request(0))
		p.stores[0].before.set(func(transition string, r storetest.AnyRequest) error {
			if transition == "renew" {
				time.Sleep(100 * time.Millisecond)
			}
			if r.Rejoin != "" {
				t.Error("rejoined for one that may not wait")
			}
			return nil
		})
		time.Sleep(request(0).TTL/3 + time.Millisecond) // the release waits for the renewal
		h.BeginRelease()
		release(t, hold(t, p.engines[0], request(0)))
		p.checkIdle(t)
	})
}

func TestAfterLossQueueAsksWithEnqueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], request(0))
		waiting(t, p.engines[0], request(WaitForever), func(*Hold) {})
		p.server.set("k", "another", time.Second)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if n := p.stores[0].count("take"); n != 1 {
			t.Errorf("%d takes, want the first one alone", n)
		}
		_, _ = h.Release(t.Context())
		p.checkIdle(t)
	})
}

func TestRepeatedHintsDiscardOnceMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		dead := deadToken(t, e)
		s.set("k", dead, time.Minute)
		s.after.set(func(string, storetest.AnyRequest) error {
			if s.count("release") == 2 { // the first was the token's own release
				s.set("k", dead, time.Minute) // a late take
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		})
		s.hint("k", dead)
		synctest.Wait()
		for range 100 {
			s.hint("k", dead)
		}
		time.Sleep(time.Second)
		if s.value("k") != "" || s.count("release") != 3 {
			t.Errorf("key %q after %d releases", s.value("k"), s.count("release"))
		}
		_ = e.Close(t.Context())
	})
}
