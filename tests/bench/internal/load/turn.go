package load

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
)

// A worker is one goroutine, and its result.
type worker struct {
	workers *Workers
	key     string
	id      int64

	acquired, acquiredInTime int64
	handoffs, handoffsInTime int64
	stuck                    int64
	fault                    error
	waits                    *measure.Histogram
	lastGrant                time.Time
}

func (c *Workers) worker(g int, key string) *worker {
	return &worker{workers: c, key: key, id: c.id(g), waits: measure.NewHistogram()}
}

// turn takes the lock once, stays in the section, and releases the lock. A lock that is
// granted after the deadline does not count as in time. It reports whether the worker can
// continue.
//
// It records the wait. For a key that no other goroutine uses, it records the time of lock
// and release together, which is what such a caller spends.
func (w *worker) turn(ctx context.Context, began, deadline time.Time) bool {
	held, err := w.workers.locks.Lock(ctx, w.key)
	granted := time.Now()
	w.lastGrant = granted
	if err != nil {
		w.waits.Record(granted.Sub(began))
		if ctx.Err() != nil {
			w.stuck++
		} else {
			w.fault = err
		}
		return false
	}
	handoff := false
	if w.workers.memory != nil {
		w.waits.Record(granted.Sub(began))
		handoff = w.workers.memory.Enter(w.id)
	}
	if w.workers.Section > 0 {
		time.Sleep(w.workers.Section)
	}
	if w.workers.memory != nil {
		w.workers.memory.Leave(w.id)
	}
	err = held.Release(ctx)
	if w.workers.memory == nil {
		w.waits.Record(time.Since(began))
	}
	w.count(handoff, granted.Before(deadline))
	if err != nil {
		w.fault = err
	}
	return err == nil
}

// count counts a granted lock.
func (w *worker) count(handoff, inTime bool) {
	w.acquired++
	if handoff {
		w.handoffs++
	}
	if inTime {
		w.acquiredInTime++
		if handoff {
			w.handoffsInTime++
		}
	}
}
