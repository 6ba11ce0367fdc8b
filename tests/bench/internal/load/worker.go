package load

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/measure"
)

// A worker is one goroutine, and its result. Locks "in time" were granted within the window.
// Others were granted to waiters after it.
type worker struct {
	job   *Job
	locks lock.Locker
	key   string
	id    int64 // above 0, unique among the goroutines of all processes

	Outcome
	lastGrant time.Time
}

func (j *Job) worker(g int) *worker {
	w := &worker{
		job: j, locks: j.lockerOf(g), key: hotKey, id: int64(j.Process*j.Goroutines + g + 1),
		Outcome: Outcome{Waits: measure.NewHistogram()},
	}
	if j.OwnKeys {
		w.key = ownKey(j.Process, g)
	}
	return w
}

// turn takes the lock once, stays in the section, and releases the lock. A lock that is granted
// after the deadline does not count as in time. It reports whether the worker can continue.
//
// It records the wait. For a key that no other goroutine uses, it records the time of lock and
// release together, which is what such a caller spends.
func (w *worker) turn(ctx context.Context, began, deadline time.Time) bool {
	if w.job.IsFirst {
		var err error
		if began, err = w.reopen(ctx); w.failed(ctx, err) {
			return false
		}
	}
	reads := w.job.Readers > 0 && rand.N(100) < w.job.Readers //nolint:gosec // it guards nothing
	held, err := w.lock(ctx, reads)
	granted := time.Now()
	w.lastGrant = granted
	if w.failed(ctx, err) {
		w.Waits.Record(granted.Sub(began))
		return false
	}
	handoff := false
	if !w.job.OwnKeys {
		w.Waits.Record(granted.Sub(began))
		handoff = w.enter(reads)
	}
	if w.job.Section > 0 {
		time.Sleep(w.job.Section)
	}
	if !w.job.OwnKeys {
		w.leave(reads)
	}
	err = held.Release(ctx)
	if w.job.OwnKeys {
		w.Waits.Record(time.Since(began))
	}
	w.count(handoff, granted.Before(deadline))
	return !w.failed(ctx, err)
}

// failed reports whether err is an error. It keeps the last one, unless the caller gave up.
func (w *worker) failed(ctx context.Context, err error) bool {
	switch {
	case err == nil:
		return false
	case ctx.Err() != nil:
		w.Starved++
	default:
		w.Faults = []string{err.Error()}
	}
	return true
}

// reopen gives the worker a new Locker, and returns when it began to. Before, it closes the old one,
// and removes the scripts from the server if the shape says so.
func (w *worker) reopen(ctx context.Context) (began time.Time, err error) {
	err = w.locks.Close()
	if w.job.NoScripts {
		admin := redis.NewClient(&redis.Options{Addr: w.job.Addrs[0]})
		err = errors.Join(err, admin.ScriptFlush(ctx).Err(), admin.Close())
	}
	began = time.Now()
	locks, failed := w.job.open()
	if failed == nil {
		w.locks, w.job.locks[0] = locks, locks
	}
	return began, errors.Join(err, failed)
}

// lock takes the key, as a reader or alone.
func (w *worker) lock(ctx context.Context, reads bool) (lock.Held, error) {
	if reads {
		return w.locks.(lock.Sharer).Share(ctx, w.key)
	}
	return w.locks.Lock(ctx, w.key)
}

// enter and leave record the section in the memory.
func (w *worker) enter(reads bool) (handoff bool) {
	switch permits := w.job.Permits; {
	case reads:
		return w.job.memory.EnterShared(w.id, math.MaxInt)
	case permits > 1:
		return w.job.memory.EnterShared(w.id, permits)
	default:
		return w.job.memory.Enter(w.id)
	}
}

func (w *worker) leave(reads bool) {
	if reads || w.job.Permits > 1 {
		w.job.memory.LeaveShared()
		return
	}
	w.job.memory.Leave(w.id)
}

// count counts a granted lock.
func (w *worker) count(handoff, inTime bool) {
	w.Acquired++
	if handoff {
		w.Handoffs++
	}
	if inTime {
		w.AcquiredInTime++
		if handoff {
			w.HandoffsInTime++
		}
	}
}
