package conformance

import (
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// patience bounds how long a test waits for something that has to happen. No test that
// passes waits that long.
const patience = suite.PatienceOfHandlers

// events records the events of a Locker.
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

// forget drops the recorded events.
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

// await waits for n events of a kind and returns them. It may be called from any goroutine.
// It fails the test if the events do not come.
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

// send sends to a channel. It may be called from any goroutine. It fails the test if no
// receiver comes.
func send(t *testing.T, what string, to chan<- struct{}) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case to <- struct{}{}:
	case <-late.C:
		t.Errorf("no receiver came: %s", what)
	}
}
