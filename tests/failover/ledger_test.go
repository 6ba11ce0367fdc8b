package failover

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A run is one run of a handler.
type run struct {
	id      string
	request string // for which it ran
	began   time.Time
}

// A counter is what the handlers of a key protect by its lock.
type counter struct {
	value  atomic.Int64 // is read, and written again a little later
	inside atomic.Int64
}

// add adds one, and takes its time for it. It reports whether it met another.
func (c *counter) add(takes time.Duration) (met bool) {
	met = c.inside.Add(1) > 1
	value := c.value.Load()
	time.Sleep(takes)
	c.value.Store(value + 1)
	return c.inside.Add(-1) > 0 || met
}

// A ledger is what all handlers write to. It is safe for concurrent use.
type ledger struct {
	takes time.Duration // how long a handler runs

	mu       sync.Mutex
	serial   int
	runs     map[string][]run // of each key
	counters map[string]*counter
	meetings map[string][]time.Time // when two were inside
	hooks    map[string]func()
}

func newLedger() *ledger {
	return &ledger{
		takes: time.Millisecond, runs: map[string][]run{}, counters: map[string]*counter{},
		meetings: map[string][]time.Time{}, hooks: map[string]func(){},
	}
}

// hook makes f run in each run for the key.
func (l *ledger) hook(key string, f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hooks[key] = f
}

// enter is the handler. It returns the id of its run.
func (l *ledger) enter(_ context.Context, key, request string) (id string) {
	l.mu.Lock()
	l.serial++
	id = fmt.Sprintf("run-%d", l.serial)
	l.runs[key] = append(l.runs[key], run{id, request, time.Now()})
	counted, hook := l.counter(key), l.hooks[key]
	l.mu.Unlock()
	if counted.add(l.takes) {
		l.mu.Lock()
		l.meetings[key] = append(l.meetings[key], time.Now())
		l.mu.Unlock()
	}
	if hook != nil {
		hook()
	}
	return id
}

// counter returns the one of the key. The caller has locked mu.
func (l *ledger) counter(key string) *counter {
	if l.counters[key] == nil {
		l.counters[key] = &counter{}
	}
	return l.counters[key]
}

// counted returns the count of the key, and when two were inside.
func (l *ledger) counted(key string) (value int64, meetings []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counter(key).value.Load(), append(meetings, l.meetings[key]...)
}

// of returns the runs for a key.
func (l *ledger) of(key string) []run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]run(nil), l.runs[key]...)
}
