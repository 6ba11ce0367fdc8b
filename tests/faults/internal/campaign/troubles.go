package campaign

import (
	"slices"
	"sync"

	"github.com/reqlock/reqlock/tests/faults/internal/clock"
	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// troubles are what a fault says is broken. They are safe for concurrent use.
type troubles struct {
	mu   sync.Mutex
	seen []trouble
	calm int64 // when the fault was over; 0 if it did not come to its end
}

// A trouble is one of them, and which keys it is a loss of.
type trouble struct {
	history.Trouble
	lost fault.Loss
}

// begin writes down that something is broken from now on, until end is called.
func (t *troubles) begin(name string, lost fault.Loss) (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := len(t.seen)
	t.seen = append(t.seen, trouble{history.Trouble{Name: name, From: clock.Now()}, lost})
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

// all returns them, with the keys that they are a loss of. Of each key of the run there
// is its name in Redis, and how clients call it. What is a loss of none of them is none.
func (t *troubles) all(keys map[string]string) (all []history.Trouble) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.seen {
		if one.lost != nil {
			one.Keys = one.of(keys)
			one.Loss = len(one.Keys) > 0
			if len(one.Keys) == len(keys) {
				one.Loss, one.Keys = true, nil
			}
		}
		all = append(all, one.Trouble)
	}
	return all
}

// of returns the keys that a trouble is a loss of, in order.
func (t *trouble) of(keys map[string]string) (lost []string) {
	for name, key := range keys {
		if t.lost(name) {
			lost = append(lost, key)
		}
	}
	slices.Sort(lost)
	return lost
}
