package failover

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/tests/internal/clock"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// A guardedCounter is what the handlers of a key guard by its lock. An increment is a read
// and a later write, so increments that overlap are lost.
type guardedCounter struct {
	value  atomic.Int64
	inside atomic.Int64
}

// increment adds one, and takes this long. It reports whether another increment ran at
// the same time.
func (c *guardedCounter) increment(duration time.Duration) (overlapped bool) {
	overlapped = c.inside.Add(1) > 1
	value := c.value.Load()
	time.Sleep(duration)
	c.value.Store(value + 1)
	return c.inside.Add(-1) > 0 || overlapped
}

// A ledger records the runs of all handlers. It is safe for concurrent use.
type ledger struct {
	runTime time.Duration // of a handler

	mu       sync.Mutex
	serial   int
	runs     map[string][]history.Effect // the runs of the handler, of each key
	counters map[string]*guardedCounter
	overlaps map[string][]int64 // when two runs of a key overlapped
	hooks    map[string]func()
}

func newLedger() *ledger {
	return &ledger{
		runTime: time.Millisecond, runs: map[string][]history.Effect{}, counters: map[string]*guardedCounter{},
		overlaps: map[string][]int64{}, hooks: map[string]func(){},
	}
}

func (l *ledger) hook(key string, f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hooks[key] = f
}

func (l *ledger) handle(_ context.Context, key, request string) (id string) {
	l.mu.Lock()
	l.serial++
	id = fmt.Sprintf("run-%d", l.serial)
	l.runs[key] = append(l.runs[key], history.Effect{At: clock.Now(), ID: id, Key: key, Request: request})
	counter, hook := l.counter(key), l.hooks[key]
	l.mu.Unlock()
	if counter.increment(l.runTime) {
		l.mu.Lock()
		l.overlaps[key] = append(l.overlaps[key], clock.Now())
		l.mu.Unlock()
	}
	if hook != nil {
		hook()
	}
	return id
}

// counter returns the counter of the key. The caller has locked mu.
func (l *ledger) counter(key string) *guardedCounter {
	if l.counters[key] == nil {
		l.counters[key] = &guardedCounter{}
	}
	return l.counters[key]
}

// count returns the count of the key, and when two runs overlapped.
func (l *ledger) count(key string) (value int64, overlaps []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counter(key).value.Load(), slices.Clone(l.overlaps[key])
}

func (l *ledger) of(key string) []history.Effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.runs[key])
}
