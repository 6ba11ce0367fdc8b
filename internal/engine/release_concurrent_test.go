package engine

import (
	"context"
	"sync"
	"testing"
)

// Calls of Release at the same time return the same, and each of them returns once the context of the hold has ended.
func TestConcurrentReleases(t *testing.T) {
	t.Parallel()
	for _, waiters := range []int{0, 1} {
		for range 300 {
			e, _, _ := newEngineOn(newFakeServer(), "p0")
			h := hold(t, e, request(0))
			got := make(chan *Hold, 1)
			if waiters > 0 {
				go func() {
					next, err := e.Acquire(t.Context(), request(WaitForever))
					if err != nil {
						t.Error(err)
					}
					got <- next
				}()
				for {
					h.shard.mu.Lock()
					n := h.lease.queue.callers
					h.shard.mu.Unlock()
					if n > 0 {
						break
					}
				}
			}
			var all sync.WaitGroup
			start := make(chan struct{})
			for i := range 4 {
				all.Go(func() {
					<-start
					if i == 0 {
						h.Context()
					}
					if loss, err := h.Release(context.Background()); loss != NotLost || err != nil {
						t.Errorf("loss %v, error %v", loss, err)
					}
					if h.Context().Err() == nil {
						t.Error("the context has not ended")
					}
				})
			}
			close(start)
			all.Wait()
			if waiters > 0 {
				release(t, <-got)
			}
		}
	}
}
