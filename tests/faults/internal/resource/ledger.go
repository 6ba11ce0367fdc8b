package resource

import (
	"slices"
	"sync"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// usersPerPayment is how many users get the same payment, one after the other.
const usersPerPayment = 4

// A ledger records the side effects of attempts. It is safe for concurrent use.
type ledger struct {
	mu        sync.Mutex
	requested int
	effects   []history.Effect
}

// payment returns the number of the current payment. Several users get the same one, so
// that their attempts compete.
func (l *ledger) payment() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.requested / usersPerPayment
	l.requested++
	return n
}

// charge records a charge, even if it is not the first one.
func (l *ledger) charge(e history.Effect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.At = clock.Now()
	l.effects = append(l.effects, e)
}

// charged returns all charges in order.
func (l *ledger) charged() []history.Effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.effects)
}
