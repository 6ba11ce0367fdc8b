package campaign

import (
	"slices"
	"sync"

	"github.com/reqlock/reqlock/faults/internal/clock"
	"github.com/reqlock/reqlock/faults/internal/history"
)

// troubles are what a fault says is broken. They are safe for concurrent use.
type troubles struct {
	mu   sync.Mutex
	seen []history.Trouble
	calm int64 // when the fault was over; 0 if it did not come to its end
}

// begin writes down that something is broken from now on, until end is called.
func (t *troubles) begin(name string, loss bool) (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := len(t.seen)
	t.seen = append(t.seen, history.Trouble{Name: name, From: clock.Now(), Loss: loss})
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.seen[i].To = clock.Now()
	})
}

// well notes that the fault has come to its end.
func (t *troubles) well() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calm = clock.Now()
}

// over returns when nothing was broken any more. A fault that did not come to its
// end, since its clients got nowhere, has broken nothing since its last trouble, or
// since the beginning, unless one goes on: then the answer is 0.
func (t *troubles) over(begun int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calm != 0 {
		return t.calm
	}
	last := begun
	for _, trouble := range t.seen {
		if trouble.To == 0 {
			return 0
		}
		last = max(last, trouble.To)
	}
	return last
}

// all returns them.
func (t *troubles) all() []history.Trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.seen)
}
