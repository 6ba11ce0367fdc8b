package campaign

import (
	"slices"
	"sync"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// disruptions are the disruptions of a run, as the fault declares them. They are safe for
// concurrent use.
type disruptions struct {
	mu   sync.Mutex
	seen []disruption
	end  int64 // when the fault ended; 0 if it failed
}

// A disruption is one of them, with the loss that it declares.
type disruption struct {
	history.Disruption
	lost fault.Loss
}

// begin records a disruption from now on, until end is called.
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

// recovered records that the fault has ended.
func (t *disruptions) recovered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = clock.Now()
}

// recoveredAt returns when the last disruption had ended. A fault that failed, because its
// clients made no progress, has disrupted nothing since its last disruption, or since
// begun. If a disruption has not ended, it returns 0.
func (t *disruptions) recoveredAt(begun int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end != 0 {
		return t.end
	}
	last := begun
	for _, one := range t.seen {
		if one.To == 0 {
			return 0
		}
		last = max(last, one.To)
	}
	return last
}

// all returns all disruptions with the keys that they lose. The map has the names of the
// keys in Redis, and how clients call them. A loss that concerns no key of the run is none.
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

// of returns the keys that a disruption loses, sorted.
func (t *disruption) of(keys map[string]string) (lost []string) {
	for name, key := range keys {
		if t.lost(name) {
			lost = append(lost, key)
		}
	}
	slices.Sort(lost)
	return lost
}
