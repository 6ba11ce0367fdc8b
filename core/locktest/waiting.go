package locktest

import (
	"sync"
	"time"

	"github.com/reqlock/reqlock/core"
)

// awaitTimeout is how long AwaitWaiting waits.
const awaitTimeout = 10 * time.Second

// Waiting returns how many callers of the Locker and its views wait for a key at this moment.
// It does not count callers of other processes. It counts a caller as soon as Redis has
// replied to it.
func (l *Locks) Waiting(key string) int {
	n, _ := l.queues.waiting(key)
	return n
}

// AwaitWaiting returns as soon as at least n callers wait for a key. If that takes more than
// 10 seconds on the clock of the test, the test fails.
func (l *Locks) AwaitWaiting(key string, n int) {
	l.tb.Helper()
	timeout := time.NewTimer(awaitTimeout)
	defer timeout.Stop()
	for {
		waiting, changed := l.queues.waiting(key)
		if waiting >= n {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			l.tb.Fatalf("locktest: %d callers wait for %q after %v, not %d", waiting, key, awaitTimeout, n)
		}
	}
}

// queues counts the callers that wait for each key, by the events of the Locker.
type queues struct {
	mu      sync.Mutex
	callers map[string]int
	changed chan struct{} // closed at the next change
}

func newQueues() *queues {
	return &queues{callers: make(map[string]int), changed: make(chan struct{})}
}

// observe is an observer of the Locker. The event of a wait's end may come before the event
// of its beginning, so a count may be below zero for a moment.
func (q *queues) observe(e core.Event) {
	step := 0
	switch {
	case e.Kind == core.Waiting:
		step = 1
	case e.Queued: // in the one event that ends a wait, of whatever kind
		step = -1
	}
	if step == 0 {
		return
	}
	key := e.Key.Raw()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.callers[key] += step
	if q.callers[key] == 0 {
		delete(q.callers, key)
	}
	close(q.changed)
	q.changed = make(chan struct{})
}

// waiting returns how many callers wait for the key, and a channel that is closed when a
// caller begins or ends a wait.
func (q *queues) waiting(key string) (n int, changed <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(q.callers[key], 0), q.changed
}
