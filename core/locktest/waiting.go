package locktest

import (
	"sync"
	"time"

	"github.com/reqlock/reqlock/core"
)

// patience is how long AwaitWaiting waits.
const patience = 10 * time.Second

// Waiting returns how many callers of the Locker, and of its views, stand in
// line for a key at this moment. It does not count callers of other processes,
// and none that have not been told yet that they must wait.
func (l *Locks) Waiting(key string) int {
	n, _ := l.lines.waiting(key)
	return n
}

// AwaitWaiting returns as soon as at least n callers stand in line for a key.
// If it does not come to that within 10 seconds on the clock of the test, the
// test fails.
func (l *Locks) AwaitWaiting(key string, n int) {
	l.tb.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		waiting, changed := l.lines.waiting(key)
		if waiting >= n {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			l.tb.Fatalf("locktest: %d callers wait for %q after %v, not %d", waiting, key, patience, n)
		}
	}
}

// lines counts who waits for which key, from what the Locker tells of itself.
type lines struct {
	mu      sync.Mutex
	callers map[string]int
	changed chan struct{} // closed at the next change
}

func newLines() *lines {
	return &lines{callers: make(map[string]int), changed: make(chan struct{})}
}

// observe is an observer of the Locker. The end of a wait may be told before
// its beginning, so a count may be below zero for a moment.
func (l *lines) observe(e core.Event) {
	step := 0
	switch e.Kind {
	case core.Waiting:
		step = 1
	case core.Acquired, core.Refused:
		if e.Queued {
			step = -1
		}
	case core.Released, core.Renewed, core.Lost, core.HeldLong, core.Unlocked:
	}
	if step == 0 {
		return
	}
	key := e.Key.Raw()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.callers[key] += step
	if l.callers[key] == 0 {
		delete(l.callers, key)
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// waiting returns how many callers wait for the key, and a channel that is
// closed when somebody comes or goes.
func (l *lines) waiting(key string) (n int, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.callers[key], 0), l.changed
}
