package engine

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
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
	bubble(t, func(t *testing.T) {
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
		sleep(time.Minute)
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

// Renewals of a server that does not answer, such as one node of a Cluster, do not keep
// the leases of other servers from being renewed.
func TestSilentServerDoesNotStopOtherRenewals(t *testing.T) {
	bubble(t, func(t *testing.T) {
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

// A lease that is passed on while it waits for its renewal is in the queue of the renewalLimiter once.
func TestLeaseWaitsForRenewalOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		fillRenewals(t, e, s, time.Minute)
		h := hold(t, e, request(0))
		for range 50 {
			waiting(t, e, request(WaitForever), func(*Hold) { time.Sleep(5 * time.Millisecond) })
		}
		passesUnlimited(h)
		time.Sleep(request(0).TTL/3 + time.Millisecond)
		release(t, h)
		time.Sleep(100 * time.Millisecond)
		e.renewals.mu.Lock()
		n := len(slices.DeleteFunc(slices.Clone(e.renewals.waiting), func(l *lease) bool { return l != h.lease }))
		e.renewals.mu.Unlock()
		if n != 1 {
			t.Errorf("%d times in the queue", n)
		}
		time.Sleep(time.Second) // all are served
		_ = e.Close(canceledContext())
		time.Sleep(time.Hour)
	})
}

// A lease that waits for its renewal is renewed for the next holder by a command of its own.
// It keeps its place, and the time of its final renewal.
func TestLeaseThatWaitsForRenewalIsPassedOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		fillRenewals(t, e, s, time.Hour)
		r := request(0)
		first := hold(t, e, r)
		passesUnlimited(first)
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

// The renewals of other leases hang. A lease that waits for them is still renewed, two
// command bounds before its end.
func TestLeaseIsRenewedBeforeEndWhileOthersHang(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		fillRenewals(t, e, s, time.Minute)
		granted := time.Now()
		h := hold(t, e, request(0))
		time.Sleep(request(0).TTL)
		if !h.Alive() {
			t.Error("the lease was lost")
		}
		times := renewalsOf(s, h.Token())
		if len(times) == 0 {
			t.Fatal("no renewal")
		}
		if got, want := times[0].Sub(granted), validity-2*bound; got != want {
			t.Errorf("renewed after %v, want %v", got, want)
		}
		time.Sleep(2 * time.Minute) // its turns in the queue come meanwhile
		times = renewalsOf(s, h.Token())
		for i := range len(times) - 1 {
			if gap := times[i+1].Sub(times[i]); gap < time.Second {
				t.Errorf("renewal %d is sent %v after the one before it", i+1, gap)
			}
		}
		h.BeginRelease()
		_ = e.Close(canceledContext())
		time.Sleep(time.Hour)
	})
}
