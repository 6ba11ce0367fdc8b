package quorumstore

import (
	"errors"
	"sync"

	"github.com/reqlock/reqlock/internal/store"
)

// Renew raises the life of the lease on all servers that have it. If those are a
// majority, the others are asked for their votes once more.
func (s *Store) Renew(r store.Request, done func(store.Renewal, error)) {
	n := &renewal{store: s, request: r, done: done, left: len(s.servers)}
	for i, one := range s.servers {
		one.Renew(r, func(answer store.Renewal, err error) { n.hear(i, answer, err) })
	}
}

// A renewal is one Renew.
type renewal struct {
	store   *Store
	request store.Request
	done    func(store.Renewal, error)

	mu       sync.Mutex
	left     int   // servers whose answer has not come
	without  []int // servers that do not have the lease
	held     int   // those that do
	answer   store.Renewal
	failures []error
	told     bool
}

// hear takes in the answer of a server.
func (n *renewal) hear(i int, answer store.Renewal, err error) {
	n.mu.Lock()
	n.left--
	switch {
	case err != nil:
		n.failures = append(n.failures, err)
	case answer.Held:
		n.hold(answer)
	default:
		n.without = append(n.without, i)
	}
	renewed, fault, decided := n.decide()
	tell := decided && !n.told
	n.told = n.told || tell
	repeats := n.left == 0 && renewed.Held
	n.mu.Unlock()
	if repeats { // before the holder can release it
		n.repeat()
	}
	if tell {
		n.done(renewed, fault)
	}
}

// hold takes in that a server has the lease: it is as old as the oldest of these
// answers, and its line as long as the longest.
func (n *renewal) hold(answer store.Renewal) {
	n.held++
	if n.held == 1 || answer.Since.Before(n.answer.Since) {
		n.answer.Since = answer.Since
	}
	n.answer.Line = max(n.answer.Line, answer.Line)
}

// decide returns what became of the lease, if that is known.
func (n *renewal) decide() (renewed store.Renewal, fault error, decided bool) { //nolint:revive // a fault is one of the results
	majority, servers := n.store.majority, len(n.store.servers)
	switch {
	case n.held >= majority:
		renewed = n.answer
		renewed.Held = true
		if b := n.store.ballotOf(n.request.Token); b != nil && b.request.Join && renewed.Line > 0 {
			renewed.Line-- // its own waiter still stands there
		}
		return renewed, nil, true
	case len(n.without) > servers-majority:
		return store.Renewal{Since: n.answer.Since}, nil, true
	case n.left > 0:
		return store.Renewal{}, nil, false
	default:
		return store.Renewal{}, n.fault(), true
	}
}

// fault returns why nobody knows whether a majority has the lease.
func (n *renewal) fault() error {
	if err := n.store.failure(n.failures); err != nil {
		return err
	}
	unknown, passing := natureOf(n.failures[0])
	return &store.Fault{Unknown: unknown, Passing: passing, Err: n.failures[0]}
}

// repeat asks those servers for their votes that do not have the lease.
func (n *renewal) repeat() {
	b := n.store.ballotOf(n.request.Token)
	if b == nil {
		return
	}
	for _, i := range n.without {
		b.repeat(i, n.request.TTL, n.request.Bound)
	}
}

// natureOf returns what is known of the fault of a transition.
func natureOf(err error) (unknown, passing bool) {
	var fault *store.Fault
	if errors.As(err, &fault) {
		return fault.Unknown, fault.Passing
	}
	return true, false
}
