package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// The key of a lost lease stays locked while its holder runs. It is not checked more
// often than a key of another process.
func TestKeyOfOwnLostLeaseIsNotPolledWithoutPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		p.stores[0].after.set(func(string, storetest.AnyRequest) error { time.Sleep(100 * time.Microsecond); return nil })
		r := request(WaitForever)
		r.Renew = false
		h := hold(t, p.engines[0], r)
		served := make(chan Handover, 1)
		waiting(t, p.engines[0], r, func(next *Hold) { served <- next.handover })
		<-h.Context().Done() // lost; the key expires 102 ms later
		if how := <-served; how != Awaited {
			t.Errorf("the key came by handover %d", how)
		}
		if n := p.stores[0].count("enqueue"); n > 3 {
			t.Errorf("%d requests", n)
		}
		_, _ = h.Release(t.Context())
		time.Sleep(time.Second)
		p.checkIdle(t)
	})
}

// The store skips a waiter that joins its queue before the process listens.
func TestWaiterJoinsOnceItListens(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ connecting, joins time.Duration }{
		"soon":                 {10 * time.Millisecond, 10 * time.Millisecond},
		"not within a command": {time.Minute, bound}, // then it checks the key at short intervals
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(2)
				p.stores[1].connecting = test.connecting
				h := hold(t, p.engines[0], request(0))
				begun := time.Now()
				waiting(t, p.engines[1], request(WaitForever), func(*Hold) {})
				time.Sleep(bound)
				synctest.Wait()
				if joined := p.stores[1].times("enqueue"); len(joined) == 0 || joined[0].Sub(begun) != test.joins {
					t.Errorf("joined at %v, want after %v", joined, test.joins)
				}
				release(t, h)
				time.Sleep(2 * time.Minute)
				p.checkIdle(t)
			})
		})
	}
}

// A process that cannot listen checks the key at short intervals. It waits for its
// subscription once.
func TestWaiterWithoutSubscriptionPolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.connecting = time.Hour
		s.set("k", "other:1", time.Minute)
		begun := time.Now()
		if _, err := e.Acquire(t.Context(), request(2*time.Second)); reasonOf(t, err) != TimedOut {
			t.Errorf("%v", err)
		}
		at := s.times("enqueue")
		if len(at) < 5 || at[0].Sub(begun) != bound {
			t.Fatalf("asked %d times, first at %v", len(at), at)
		}
		for i, pause := range pollPauses {
			if got := at[i+1].Sub(at[i]); got != pause {
				t.Errorf("pause %d is %v, want %v", i, got, pause)
			}
		}
		_ = e.Close(t.Context())
	})
}

// A process listens as soon as a caller waits behind a holder of this process. Otherwise
// it would not learn whether other processes wait.
func TestWaiterBehindOwnHolderListens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		waiting(t, e, request(WaitForever), func(*Hold) {})
		if s.listening != 1 {
			t.Errorf("%d subscriptions", s.listening)
		}
		release(t, h)
		synctest.Wait()
	})
}
