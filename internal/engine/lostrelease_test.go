package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The lease is lost while its holder runs, and a server that restores old data
// holds the token again. The release of such a hold returns at once, because the
// loss is known. The engine frees the key as soon as the store replies.
func TestReleaseAfterLossDoesNotWaitForTheStore(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		request Request
		finish  func(h *Hold) (Loss, error)
		want    Loss
	}{
		{
			"a lock", request(0),
			func(h *Hold) (Loss, error) { return h.Release(context.Background()) }, Taken,
		},
		{
			// The loss that End returns is about the ending only.
			"an attempt that is interrupted", attempt("f", 0),
			func(h *Hold) (Loss, error) { return h.End(context.Background(), Interrupt, nil) }, NotLost,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(1)
				h := hold(t, p.engines[0], test.request)
				p.server.set("k", "", 0)
				<-h.Context().Done()
				p.server.set("k", h.Token(), time.Hour)
				const outage = time.Second
				failsFor(p.stores[0], outage, "release")
				begun := time.Now()
				loss, err := test.finish(h)
				if took := time.Since(begun); loss != test.want || err != nil || took > 0 {
					t.Errorf("loss %v, error %v after %v, want %v at once", loss, err, took, test.want)
				}
				time.Sleep(outage + maxPause)
				synctest.Wait()
				if tries := p.stores[0].begunCount("release"); tries < 2 {
					t.Errorf("%d releases sent, want one more after the outage", tries)
				}
				if value := p.server.value("k"); value != "" {
					t.Error("the key is not free after the outage")
				}
				p.checkIdle(t)
			})
		})
	}
}

// A process was paused and continues. Its holder releases before the timer of the lease
// fires. The lease has ended, so it is not passed on, and the release reports the loss.
func TestReleaseAfterValidityReportsLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		r := request(0)
		r.Renew = false
		h := hold(t, p.engines[0], r)
		var token string
		waiting(t, p.engines[0], request(WaitForever), func(next *Hold) { token = next.Token() })
		h.shard.mu.Lock()
		h.lease.budget.unlimited = true     // no other process waits
		p.engines[0].schedule.drop(h.lease) // as if the timer were late
		h.shard.mu.Unlock()
		time.Sleep(r.TTL)
		loss, err := h.Release(context.Background())
		if loss != Taken || err != nil {
			t.Errorf("loss %v, error %v, want %v", loss, err, Taken)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if token == "" || token == h.Token() {
			t.Errorf("the waiter was served under the token %q after %q", token, h.Token())
		}
		p.checkIdle(t)
	})
}

// A Close that gives up leaves the keys of the remaining holders to their TTL. A
// late release sends no command through a store that is closed.
func TestReleaseAfterCloseGaveUpSendsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, request(0))
		if err := e.Close(canceledContext()); err == nil {
			t.Error("closed under a holder")
		}
		if loss, err := h.Release(context.Background()); loss != Closed || err != nil {
			t.Errorf("loss %v, error %v, want %v", loss, err, Closed)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := s.begunCount("release"); n != 0 || s.value("k") != h.Token() {
			t.Errorf("%d releases sent, key %q", n, s.value("k"))
		}
	})
}

// A hold that was released before its MaxHold leaves no timer.
func TestReleaseStopsTimerOfMaxHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		r := request(0)
		r.MaxHold = time.Hour
		h := hold(t, p.engines[0], r)
		release(t, h)
		if h.maxHoldTimer.Stop() {
			t.Error("the timer was running after the release")
		}
		p.checkIdle(t)
	})
}

// MaxHold passes, and then the key is taken. Only the first loss is reported.
func TestReleaseReportsFirstLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		r := request(0)
		r.MaxHold = time.Second
		h := hold(t, p.engines[0], r)
		<-h.Context().Done()
		p.server.set("k", "another", time.Second)
		if loss, err := h.Release(context.Background()); loss != MaxHoldExceeded || err != nil {
			t.Errorf("loss %v, error %v, want %v", loss, err, MaxHoldExceeded)
		}
		synctest.Wait() // the queue of events is empty
		if lost := p.events[0].of(Lost); len(lost) != 1 || lost[0].Loss != MaxHoldExceeded {
			t.Errorf("lost %+v, want %v once", lost, MaxHoldExceeded)
		}
		time.Sleep(2 * time.Second)
		p.checkIdle(t)
	})
}
