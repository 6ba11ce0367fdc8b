package campaign

import (
	"slices"
	"sync"

	"github.com/reqlock/reqlock/tests/faults/internal/clock"
	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// disruptions are what a fault says is broken. They are safe for concurrent use.
type disruptions struct {
	mu   sync.Mutex
	seen []disruption
	end  int64 // when the fault was over; 0 if it did not come to its end
}

// A disruption is one of them, and which keys it is a loss of.
type disruption struct {
	history.Disruption
	lost fault.Loss
}

// begin writes down that something is broken from now on, until end is called.
func (t *disruptions) begin(name string, lost fault.Loss) (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := len(t.seen)
	t.seen = append(t.seen, disruption{history.Disruption{Name: name, From: clock.Now()}, lost})
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.seen[i].To = clock.Now()
	})
}

// recovered notes that the fault has come to its end.
func (t *disruptions) recovered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = clock.Now()
}

// recoveredAt returns when nothing was broken any more. A fault that did not come to its
// end, since its clients got nowhere, has broken nothing since its last trouble, or
// since the beginning, unless one goes on: then the answer is 0.
func (t *disruptions) recoveredAt(begun int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end != 0 {
		return t.end
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
func (t *disruptions) all(keys map[string]string) (all []history.Disruption) {
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
		all = append(all, one.Disruption)
	}
	return all
}

// of returns the keys that a trouble is a loss of, in order.
func (t *disruption) of(keys map[string]string) (lost []string) {
	for name, key := range keys {
		if t.lost(name) {
			lost = append(lost, key)
		}
	}
	slices.Sort(lost)
	return lost
}
