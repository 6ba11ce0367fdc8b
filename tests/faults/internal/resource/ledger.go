package resource

import (
	"slices"
	"sync"

	"github.com/reqlock/reqlock/tests/faults/internal/clock"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// usersPerPayment is how many attempts are given the same payment, one after the other.
const usersPerPayment = 4

// A ledger is the world in which attempts take effect. It is safe for concurrent
// use.
type ledger struct {
	mu        sync.Mutex
	requested int
	effects   []history.Effect
}

// payment returns the number of the payment that is due: each is given to a few,
// so that they meet.
func (l *ledger) payment() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.requested / usersPerPayment
	l.requested++
	return n
}

// charge writes a charge down. It does not ask whether there was one before.
func (l *ledger) charge(e history.Effect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.At = clock.Now()
	l.effects = append(l.effects, e)
}

// charged returns all charges, in their order.
func (l *ledger) charged() []history.Effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.effects)
}
