package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The key of a lost lease stays locked while its holder runs. It is not checked more
// often than a key of another process.
func TestKeyOfOwnLostLeaseIsNotPolledWithoutPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		p.stores[0].after.set(delays(100 * time.Microsecond))
		r := request(WaitForever)
		r.Renew = false
		h := hold(t, p.engines[0], r)
		served := make(chan Grant, 1)
		waiting(t, p.engines[0], r, func(next *Hold) { served <- next.grant })
		<-h.Context().Done() // lost; the key expires 102 ms later
		if how := <-served; how != Awaited {
			t.Errorf("the key came by grant %d", how)
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
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		p.stores[1].connecting = 10 * time.Millisecond
		h := hold(t, p.engines[0], request(0))
		begun := time.Now()
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) {})
		sleep(bound)
		if joined := p.stores[1].times("enqueue"); len(joined) == 0 || joined[0].Sub(begun) != p.stores[1].connecting {
			t.Errorf("joined at %v", joined)
		}
		release(t, h)
		p.checkIdle(t)
	})
}

// A process that cannot listen checks the key at short intervals. It waits for its
// subscription once.
func TestWaiterWithoutSubscriptionPolls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.connecting = time.Hour
		s.set("k", "other:1", time.Minute)
		begun := time.Now()
		refuses(t, e, request(2*time.Second), TimedOut)
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

// A holder of a lost lease keeps its queue from being recycled. A waiter that comes after the
// queue was idle has to listen again.
func TestWaiterListensAgainAfterIdleQueueOfLostLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		lost := hold(t, p.engines[0], request(0))
		p.server.set("k", "", 0)
		<-lost.Context().Done()
		other := hold(t, p.engines[1], request(0))
		refuses(t, p.engines[0], request(time.Second), TimedOut)
		synctest.Wait()
		if p.stores[0].listens() {
			t.Fatal("the idle queue listens")
		}
		begun, served := time.Now(), time.Time{}
		waiting(t, p.engines[0], request(WaitForever), func(*Hold) { served = time.Now() })
		release(t, other)
		synctest.Wait()
		if served != begun {
			t.Errorf("served after %v", served.Sub(begun))
		}
		_, _ = lost.Release(context.Background())
		p.checkIdle(t)
	})
}
