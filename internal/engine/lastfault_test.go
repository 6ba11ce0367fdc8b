package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// The lease expires under its holder, and the store does not reply. It is not known
// then whether another process holds the key, so a waiter is refused because of the
// store when its wait ends.
func TestWaiterBehindExpiredLeaseIsNotBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		r := request(0)
		r.Renew = false
		h := hold(t, p.engines[0], r)
		refused := make(chan error, 1)
		go func() {
			_, err := p.engines[0].Acquire(t.Context(), request(r.TTL))
			refused <- err
		}()
		synctest.Wait()
		p.stores[0].before.set(func(string, storetest.AnyRequest) error {
			time.Sleep(time.Second)
			return nil
		})
		if err := <-refused; reasonOf(t, err) != Unavailable {
			t.Errorf("refused with %v, want %v", reasonOf(t, err), Unavailable)
		}
		if loss, err := h.Release(t.Context()); loss != Expired || err != nil {
			t.Errorf("loss %v, error %v", loss, err)
		}
		time.Sleep(time.Minute)
		p.checkIdle(t)
	})
}

// The store replied that the key is locked, and then stops replying. A nowait caller is
// refused because of the store, although others wait in this process.
func TestCallerDuringFaultIsNotBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		p.server.set("k", "foreign", 5*time.Second)
		waiting(t, p.engines[0], request(WaitForever), func(*Hold) {})
		if _, err := p.engines[0].Acquire(t.Context(), request(0)); reasonOf(t, err) != Busy {
			t.Errorf("before the fault: refused with %v, want %v", reasonOf(t, err), Busy)
		}
		p.stores[0].before.set(func(string, storetest.AnyRequest) error { return errDown })
		time.Sleep(3 * time.Second)
		if _, err := p.engines[0].Acquire(t.Context(), request(0)); reasonOf(t, err) != Unavailable {
			t.Errorf("refused with %v, want %v", reasonOf(t, err), Unavailable)
		}
		p.stores[0].before.set(nil)
		time.Sleep(time.Minute)
		p.checkIdle(t)
	})
}

// A renewal before a pass fails, and the release after it succeeds. The store replies
// again, so a waiter behind the next holder is refused because of contention.
func TestReleaseReplyClearsLastFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], request(0))
		waiting(t, p.engines[0], longer(WaitForever), func(*Hold) { time.Sleep(10 * time.Second) })
		refused := make(chan error, 1)
		go func() {
			_, err := p.engines[0].Acquire(t.Context(), request(time.Second))
			refused <- err
		}()
		synctest.Wait()
		p.stores[0].before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "renew" {
				return errDown
			}
			return nil
		})
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
