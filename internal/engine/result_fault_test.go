package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestFaultIsNotContention(t *testing.T) {
	t.Parallel()
	denied := &store.Fault{Err: errors.New("denied")}
	for _, test := range []struct {
		name  string
		fault *store.Fault
		wait  time.Duration
		after time.Duration // time of the refusal
	}{
		{"temporary, nowait caller", errDown, 0, 0},
		{"temporary, waiter retries to the end of its wait", errDown, time.Second, time.Second},
		{"permanent, nowait caller", denied, 0, 0},
		{"permanent, waiter", denied, time.Second, 0},
	} {
		row(t, test.name, func(t *testing.T) {
			e, s, _ := newEngine()
			s.before.set(func(string, storetest.AnyRequest) error { return test.fault })
			begun := time.Now()
			_, err := e.Acquire(t.Context(), request(test.wait))
			if reasonOf(t, err) != Unavailable || !errors.Is(err.(*Refusal).Fault, test.fault) || time.Since(begun) != test.after { //nolint:errorlint,forcetypeassert // checked by reasonOf
				t.Errorf("%v after %v", err, time.Since(begun))
			}
			synctest.Wait()
			checkNoQueue(t, e)
		})
	}
}

func TestEventsComeInOrder(t *testing.T) {
	t.Parallel()
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			e, s, events := newEngine()
			s.set("k", "foreign", time.Hour)
			// The reply comes at the moment when the wait ends.
			s.before.set(delays(time.Millisecond))
			if _, err := e.Acquire(t.Context(), request(time.Millisecond)); err == nil {
				t.Fatal("acquired")
			}
			time.Sleep(time.Second) // all commands in flight end
			all := events.all()
			if last := all[len(all)-1]; last.Kind != Refused || last.Queued != (all[0].Kind == Waiting) || len(all) > 2 {
				t.Errorf("events %+v", all)
			}
		})
	}
}

// A nowait caller waits for a release no longer than for a command. The key may be free
// then, so this is not contention.
func TestNowaitCallerDuringSlowRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		s.before.set(delays(3 * bound))
		h.BeginRelease()
		refuses(t, e, request(bound/10), Unavailable)
		begun := time.Now()
		if _, err := e.Acquire(t.Context(), request(0)); reasonOf(t, err) != Unavailable || time.Since(begun) != bound {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		closes(t, e)
	})
}

// The lease expires under its holder, and the store does not reply. It is not known
// then whether another process holds the key, so a waiter is refused because of the
// store when its wait ends.
func TestWaiterBehindExpiredLeaseIsNotBusy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		r := request(0)
		r.Renew = false
		h := hold(t, p.engines[0], r)
		refused := acquiring(t, p.engines[0], request(r.TTL))
		p.stores[0].before.set(delays(time.Second))
		if err := <-refused; reasonOf(t, err) != Unavailable {
			t.Errorf("refused with %v, want %v", reasonOf(t, err), Unavailable)
		}
		releaseLost(t, h, Expired)
		time.Sleep(time.Minute)
		p.checkIdle(t)
	})
}

// The store replied that the key is locked, and then stops replying. A nowait caller is
// refused because of the store, although others wait in this process.
func TestCallerDuringFaultIsNotBusy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		p.server.set("k", "foreign", 5*time.Second)
		waiting(t, p.engines[0], request(WaitForever), func(*Hold) {})
		refuses(t, p.engines[0], request(0), Busy)
		p.stores[0].before.set(fails(errDown))
		time.Sleep(3 * time.Second)
		refuses(t, p.engines[0], request(0), Unavailable)
		p.stores[0].before.set(nil)
		time.Sleep(time.Minute)
		p.checkIdle(t)
	})
}

// A renewal before a pass fails, and the release after it succeeds. The store replies
// again, so a waiter behind the next holder is refused because of contention.
func TestReleaseReplyClearsLastFault(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], request(0))
		waiting(t, p.engines[0], longer(WaitForever), func(*Hold) { time.Sleep(10 * time.Second) })
		refused := acquiring(t, p.engines[0], request(time.Second))
		p.stores[0].before.set(fails(errDown, "renew"))
		release(t, h)
		synctest.Wait()
		if n := p.stores[0].begunCount("renew"); n != 1 {
			t.Errorf("%d renewals before the pass, want 1", n)
		}
		p.stores[0].before.set(nil)
		if err := <-refused; reasonOf(t, err) != TimedOut {
			t.Errorf("refused with %v, want %v", reasonOf(t, err), TimedOut)
		}
		time.Sleep(time.Minute)
		p.checkIdle(t)
	})
}

// A lease cannot be used if its validity is over when the reply arrives. The waiter gets
// a lease under a fresh token, and before the end of its wait.
func TestWaiterIsServedAfterReplyOutlivedItsLease(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		slow  string        // the transition with a slow first reply
		delay time.Duration // longer than the lease of the reply
		held  time.Duration // by the first holder
		next  Request
		// releases are the releases in the end: of the dead token, if it has the key, and of
		// the last lease.
		releases int
	}{
		{"a renewal before a pass", "renew", 2 * time.Minute, 0, longer(time.Hour), 2},
		// The key stays with the process, under the token that rejoined.
		{"a release that keeps the key", "release", time.Minute, time.Second, request(time.Hour), 3},
	} {
		row(t, test.name, func(t *testing.T) {
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
			sleep(2 * time.Hour)
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
	}
}
