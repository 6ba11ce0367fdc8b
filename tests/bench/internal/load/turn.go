package load

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
)

// A worker is one goroutine of a crew, and what it has seen.
type worker struct {
	crew *Crew
	key  string
	who  int64

	acquired, acquiredInTime int64
	handoffs, handoffsInTime int64
	stuck                    int64
	fault                    error
	waits                    *measure.Histogram
	lastGrant                time.Time
}

func (c *Crew) worker(g int, key string) *worker {
	return &worker{crew: c, key: key, who: c.who(g), waits: measure.NewHistogram()}
}

// turn takes the lock once, stays in the section, and gives it back. What is
// granted after the deadline does not count as in time. It reports whether the
// worker can go on.
//
// What it records is the wait. For a key that nobody else wants it is the time
// of lock and release together, which is what such a caller spends.
func (w *worker) turn(ctx context.Context, began, deadline time.Time) bool {
	held, err := w.crew.locks.Lock(ctx, w.key)
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
	if w.crew.memory != nil {
		w.waits.Record(granted.Sub(began))
		handoff = w.crew.memory.Enter(w.who)
	}
	if w.crew.Section > 0 {
		time.Sleep(w.crew.Section)
	}
	if w.crew.memory != nil {
		w.crew.memory.Leave(w.who)
	}
	err = held.Release(ctx)
	if w.crew.memory == nil {
		w.waits.Record(time.Since(began))
	}
	w.count(handoff, granted.Before(deadline))
	if err != nil {
		w.fault = err
	}
	return err == nil
}

// count counts an acquisition.
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
