package engine

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// manyLeases is more leases than can be renewed at a time.
const manyLeases = 4 * maxRenewals

// holdMany acquires manyLeases leases.
func holdMany(t *testing.T, e *Engine) []*Hold {
	t.Helper()
	holds := make([]*Hold, manyLeases)
	for i := range holds {
		r := request(0)
		r.Key = strconv.Itoa(i)
		holds[i] = hold(t, e, r)
	}
	return holds
}

// Leases that are due together are all renewed, but not all at the same time.
func TestSimultaneousRenewalsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, events := newEngine()
		holds := holdMany(t, e)
		var mu sync.Mutex
		inFlight, most := 0, 0
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			inFlight += n
			most = max(most, inFlight)
		}
		s.before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "renew" {
				count(1)
				time.Sleep(100 * time.Millisecond) // the store is busy
				count(-1)
			}
			return nil
		})
		for i := range holds[:manyLeases/4] {
			if i%2 == 0 { // some are released before their turn
				time.AfterFunc(request(0).TTL/3+50*time.Millisecond, func() { release(t, holds[manyLeases-1-i]) })
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		if most != maxRenewals {
			t.Errorf("%d renewals at a time, want %d", most, maxRenewals)
		}
		mu.Unlock()
		if lost := events.of(Lost); len(lost) > 0 {
			t.Errorf("%d lost, the first: %+v", len(lost), lost[0])
		}
		s.before.set(nil)
		for _, h := range holds {
			if h.Alive() {
				release(t, h)
			}
		}
		time.Sleep(time.Minute)
		e.renewals.mu.Lock()
		defer e.renewals.mu.Unlock()
		if e.renewals.inFlight != 0 || len(e.renewals.waiting) != 0 {
			t.Errorf("%d in flight, %d waiting", e.renewals.inFlight, len(e.renewals.waiting))
		}
	})
}

// Renewals that hang do not delay the report of a loss.
func TestHangingRenewalsDoNotDelayLosses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		begun := time.Now()
		holds := holdMany(t, e)
		s.before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "renew" {
				time.Sleep(time.Minute)
			}
			return nil
		})
		for _, h := range holds {
			<-h.Context().Done()
			if got := time.Since(begun); got != validity {
				t.Fatalf("loss after %v, want %v", got, validity)
			}
		}
		for _, h := range holds {
			_, _ = h.Release(context.Background())
		}
		time.Sleep(time.Hour)
	})
}

// Renewals of a server that does not answer, such as one node of a Cluster, do not keep
// the leases of other servers from being renewed.
func TestSilentServerDoesNotStopOtherRenewals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		r := request(0)
		r.TTL = time.Second
		for i := range 1000 {
			r.Key = "dead" + strconv.Itoa(i)
			hold(t, e, r)
		}
		time.Sleep(5 * time.Millisecond)
		r.Key = "alive"
		h := hold(t, e, r)
		s.before.set(func(name string, r storetest.AnyRequest) error {
			if name == "renew" && strings.HasPrefix(r.Key, "dead") {
				time.Sleep(r.Bound)
				return errDown
			}
			return nil
		})
		time.Sleep(5 * time.Second)
		if !h.Alive() {
			t.Error("a lease on a node that answers was lost")
		}
		_ = e.Close(canceledContext())
		time.Sleep(time.Hour)
	})
}

// A lease is in the queue of the renewalLimiter at most once.
func TestLeaseWaitsForRenewalOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.before.set(func(name string, r storetest.AnyRequest) error {
			if name == "renew" && strings.HasPrefix(r.Key, "dead") {
				time.Sleep(time.Minute)
			}
			return nil
		})
		r := request(0)
		for i := range maxRenewals {
			r.Key = "dead" + strconv.Itoa(i)
			hold(t, e, r)
		}
		r.Key = "k"
		first := hold(t, e, r)
		time.Sleep(50 * time.Millisecond)
		for range 900 {
			r := request(WaitForever)
			go func() {
				if h, err := e.Acquire(t.Context(), r); err == nil {
					time.Sleep(5 * time.Millisecond)
					_, _ = h.Release(t.Context())
				}
			}()
			synctest.Wait()
		}
		r.Key = "k"
		time.Sleep(r.TTL/3 - time.Millisecond)
		release(t, first)
		time.Sleep(4400 * time.Millisecond)
		synctest.Wait()
		e.renewals.mu.Lock()
		n, mine := len(e.renewals.waiting), 0
		for _, l := range e.renewals.waiting {
			if l.queue.key == "k" {
				mine++
			}
		}
		e.renewals.mu.Unlock()
		if mine > 1 {
			t.Errorf("%d times, of %d", mine, n)
		}
		_ = e.Close(canceledContext())
		time.Sleep(time.Hour)
	})
}

// A lease that waits for its renewal is renewed for the next holder by a command of its own.
// It keeps its place, and the time of its final renewal.
func TestLeaseThatWaitsForRenewalIsPassedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.before.set(func(name string, r storetest.AnyRequest) error {
			if name == "renew" && strings.HasPrefix(r.Key, "dead") {
				time.Sleep(time.Hour)
			}
			return nil
		})
		r := request(0)
		for i := range maxRenewals {
			r.Key = "dead" + strconv.Itoa(i)
			hold(t, e, r)
		}
		time.Sleep(50 * time.Millisecond)
		r.Key = "k"
		first := hold(t, e, r)
		waitsUnlimited(t, e)
		longer := request(WaitForever)
		longer.TTL = 2 * r.TTL
		waiting(t, e, longer, func(h *Hold) {
			time.Sleep(2 * longer.TTL)
			if s.value("k") != h.Token() {
				t.Error("the lease was not renewed")
			}
		})
		time.Sleep(r.TTL/3 + time.Millisecond)
		release(t, first)
		time.Sleep(3 * longer.TTL)
		_ = e.Close(canceledContext())
		time.Sleep(2 * time.Hour)
	})
}
