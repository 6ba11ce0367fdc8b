package conformance

import (
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

// events keeps what the observer of a Locker is told.
type events struct {
	mu      sync.Mutex
	all     []core.Event
	changed chan struct{} // closed at the next event
}

func newEvents() *events { return &events{changed: make(chan struct{})} }

// observe is the observer.
func (e *events) observe(event core.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
	close(e.changed)
	e.changed = make(chan struct{})
}

// forget begins anew.
func (e *events) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = nil
}

// of returns the events of a kind, and a channel that is closed at the next
// event of any kind.
func (e *events) of(kind core.EventKind) (found []core.Event, changed <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.all {
		if event.Kind == kind {
			found = append(found, event)
		}
	}
	return found, e.changed
}

// count returns how many events of a kind there were.
func (e *events) count(kind core.EventKind) int {
	found, _ := e.of(kind)
	return len(found)
}

// await waits for n events of a kind and returns them. It may be called from
// any goroutine; where they do not come, it fails the test.
func (e *events) await(t *testing.T, kind core.EventKind, n int) []core.Event {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		found, changed := e.of(kind)
		if len(found) >= n {
			return found
		}
		select {
		case <-changed:
		case <-late.C:
			t.Errorf("%d events %q, not %d", len(found), kind, n)
			return found
		}
	}
}

// give lets somebody who awaits a channel go on. It may be called from any
// goroutine; where nobody comes, it fails the test.
func give(t *testing.T, what string, to chan<- struct{}) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case to <- struct{}{}:
	case <-late.C:
		t.Errorf("nobody waits until %s", what)
	}
}

// await waits for a channel. It may be called from any goroutine; where nothing
// comes, it fails the test.
func await[T any](t *testing.T, what string, from <-chan T) (got T) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case got = <-from:
	case <-late.C:
		t.Errorf("waited in vain until %s", what)
	}
	return got
}
