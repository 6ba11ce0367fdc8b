package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A holder of a lost lease keeps its queue from being recycled. A waiter that comes after the
// queue was idle has to listen again.
func TestWaiterListensAgainAfterIdleQueueOfLostLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		lost := hold(t, p.engines[0], request(0))
		p.server.set("k", "", 0)
		<-lost.Context().Done()
		other := hold(t, p.engines[1], request(0))
		if _, err := p.engines[0].Acquire(t.Context(), request(time.Second)); reasonOf(t, err) != TimedOut {
			t.Fatal(err)
		}
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

// The schedule does not keep a lost lease, nor its timer the engine.
func TestLostLeaseLeavesTheSchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _, _ := newEngine()
		h := hold(t, e, request(0))
		_ = e.Close(canceledContext())
		e.schedule.mu.Lock()
		if len(e.schedule.heap) != 0 || !e.schedule.at.IsZero() {
			t.Errorf("%d leases are left, due at %v", len(e.schedule.heap), e.schedule.at)
		}
		e.schedule.mu.Unlock()
		_, _ = h.Release(context.Background())
	})
}
