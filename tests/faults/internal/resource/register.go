package resource

import (
	"slices"
	"sync"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// A name identifies a register.
type name struct {
	key    string
	fenced bool
}

// A register is one value under the lock.
type register struct {
	version int64 // the number of accepted writes
	fence   int64 // the highest one that it has seen
}

// Registers are the registers of all keys, and the accesses to them. They are safe for
// concurrent use.
type registers struct {
	mu       sync.Mutex
	all      map[name]*register
	accesses []history.Access
}

// access executes an access, and records it with its result.
func (r *registers) access(a history.Access) history.Access {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := name{a.Key, a.Fenced}
	one := r.all[id]
	if one == nil {
		one = &register{}
		r.all[id] = one
	}
	a.At = clock.Now()
	a.Refused = a.Fenced && a.Fence < one.fence
	if !a.Write {
		a.Version = one.version
	}
	if !a.Refused {
		one.fence = max(one.fence, a.Fence)
		if a.Write {
			one.version++
		}
	}
	r.accesses = append(r.accesses, a)
	return a
}

// log returns all accesses in order.
func (r *registers) log() []history.Access {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.accesses)
}
