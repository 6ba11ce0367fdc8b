package waiting

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A resource refuses a fencing number that is not above all numbers before. The lock
// guards it.
type resource struct {
	last          int64
	writes, falls int
	worst         int64
}

func (r *resource) write(fence int64) {
	r.writes++
	if fence <= r.last {
		r.falls++
		r.worst = max(r.worst, r.last-fence+1)
		return
	}
	r.last = fence
}

// loseCounter deletes a fencing counter, and returns how many microseconds it was ahead
// of the server's clock; 0 if it was not.
const loseCounter = `
local last, time = tonumber(redis.call('GET', KEYS[1]) or 0), redis.call('TIME')
redis.call('DEL', KEYS[1])
return math.max(0, last - time[1] * 1000000 - time[2])`

// TestNumbersRiseAtFullSpeed takes a lock as fast as it goes while its fencing counter
// is deleted at random. REQLOCK_SOAK=1m makes each part last for a minute.
//
//faults:row 21: at full speed
func TestNumbersRiseAtFullSpeed(t *testing.T) {
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
			server := redistest.Start(t)
			lasts := min(soakTime(t), time.Minute)
			if testing.Short() || raced() {
				lasts = min(lasts, time.Second)
			}
			var guarded resource
			over := make(chan struct{})
			var callers, deleter sync.WaitGroup
			for range c.lockers {
				locks := newLocker(t, server.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true }), core.WithFencing(true))
				for range c.callers {
					callers.Go(func() {
						for !isClosed(over) {
							err := locks.Do(t.Context(), theKey, func(ctx context.Context) error {
								lease, _ := core.FromContext(ctx)
								guarded.write(lease.Fence())
								return nil
							})
							if err != nil {
								t.Errorf("lock: %v", err)
								return
							}
						}
					})
				}
			}
			deletions, ahead := 0, int64(0)
			deleter.Go(func() {
				rdb := server.Client(t)
				for !isClosed(over) {
					nap(rand.N(100 * time.Millisecond))
					by, err := rdb.Eval(t.Context(), loseCounter, []string{"{reqlock:" + theKey + "}:f"}).Int64()
					if err != nil {
						t.Errorf("delete the counter: %v", err)
						return
					}
					ahead = max(ahead, by)
					deletions++
				}
			})
			nap(lasts)
			close(over)
			callers.Wait()
			deleter.Wait()
			if guarded.falls > 0 || guarded.writes == 0 {
				t.Errorf("%d of %d numbers were not above the ones before, by up to %d", guarded.falls, guarded.writes, guarded.worst)
			}
			if ahead > 0 {
				t.Errorf("the counter was up to %d us ahead of the server's clock", ahead)
			}
			t.Logf("%d locks in %v, %d deletions of the counter", guarded.writes, lasts, deletions)
		})
	}
}

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
