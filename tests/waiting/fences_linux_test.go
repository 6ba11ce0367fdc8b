package waiting

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A resource counts the fences that do not rise. The lock guards it.
type resource struct {
	last          int64
	writes, falls int
	deepest       int64 // fall
}

func (r *resource) write(fence int64) {
	r.writes++
	if fence <= r.last {
		r.falls++
		r.deepest = max(r.deepest, r.last-fence+1)
		return
	}
	r.last = fence
}

// deleteCounter deletes a fencing counter. It returns how many microseconds the counter
// was ahead of the server's clock, or 0.
const deleteCounter = `
local last, time = tonumber(redis.call('GET', KEYS[1]) or 0), redis.call('TIME')
redis.call('DEL', KEYS[1])
return math.max(0, last - time[1] * 1000000 - time[2])`

// A lock is taken as fast as possible while its fencing counter is deleted at random
// times. REQLOCK_SOAK=1m makes each part last a minute.
func TestFencesRiseAtFullSpeed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		lockers, callers int
	}{
		{name: "alone", lockers: 1, callers: 1},
		{name: "in one process", lockers: 1, callers: 16},
		{name: "across processes", lockers: 4, callers: 1},
		{name: "in several processes", lockers: 4, callers: 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			duration := soakTime(t, 300*time.Millisecond)
			var guarded resource
			var locked atomic.Int64 // calls that are done
			stop := make(chan struct{})
			var callers, deleter sync.WaitGroup
			for range c.lockers {
				locks := newLocker(t, server.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true }), core.WithFencing(true))
				for range c.callers {
					callers.Go(func() {
						for !suite.IsClosed(stop) {
							err := locks.Do(t.Context(), theKey, func(ctx context.Context) error {
								lease, _ := core.LeaseFromContext(ctx)
								guarded.write(lease.Fence())
								return nil
							})
							if err != nil {
								t.Errorf("lock: %v", err)
								return
							}
							locked.Add(1)
						}
					})
				}
			}
			deletions, ahead := 0, int64(0)
			rdb := server.Client(t)
			deleter.Go(func() {
				for !suite.IsClosed(stop) {
					sleep(rand.N(100 * time.Millisecond))
					by, err := rdb.Eval(t.Context(), deleteCounter, []string{"{reqlock:" + theKey + "}:f"}).Int64()
					if err != nil {
						t.Errorf("delete the counter: %v", err)
						return
					}
					ahead = max(ahead, by)
					deletions++
				}
			})
			sleep(duration)
			suite.Eventually(t, "a few hundred calls are done", func() bool { return t.Failed() || locked.Load() >= 300 })
			close(stop)
			callers.Wait()
			deleter.Wait()
			if guarded.falls > 0 || guarded.writes == 0 {
				t.Errorf("%d of %d fences did not rise, by up to %d", guarded.falls, guarded.writes, guarded.deepest)
			}
			if ahead > 0 {
				t.Errorf("the counter was up to %d us ahead of the server's clock", ahead)
			}
			t.Logf("%d locks in %v, %d deletions of the counter", guarded.writes, duration, deletions)
		})
	}
}
