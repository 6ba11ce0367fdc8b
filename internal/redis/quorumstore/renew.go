package quorumstore

import (
	"errors"
	"sync"

	"github.com/reqlock/reqlock/internal/store"
)

// Renew raises the life of the lease on all servers that have it, and asks the others
// for their votes once more. It counts if a majority has it then. The lease is lost
// where so many have forgotten it that others may have had a majority meanwhile.
func (s *Store) Renew(r store.RenewRequest, done func(store.Renewal, error)) {
	n := &renewal{
		store: s, ballot: s.ballotOf(r.Target), request: r, moves: s.muster.moves(), done: done, left: len(s.servers),
	}
	if n.ballot != nil {
		n.ballot.longest(r.TTL)
	}
	for i, one := range s.servers {
		one.Renew(r, func(answer store.Renewal, err error) { n.hear(i, answer, err) })
	}
}

// A renewal is one Renew.
type renewal struct {
	store   *Store
	ballot  *ballot // nil if it is not known
	request store.RenewRequest
	moves   []int // see muster.moved
	done    func(store.Renewal, error)

	mu       sync.Mutex
	left     int   // servers whose answer has not come
	asked    int   // those that were asked for their votes, whose answer has not come
	held     int   // those that have the lease
	gained   []int // those of them that did not have it
	without  int   // those that did not have it
	answer   store.Renewal
	failures []error
	told     bool
}

// hear takes in the answer of a server.
func (n *renewal) hear(i int, answer store.Renewal, err error) {
	if err == nil && n.store.muster.moved(i, n.moves) {
		err = &store.Fault{Unknown: true, Temporary: true, Err: errMoved}
	}
	n.mu.Lock()
	n.left--
	switch {
	case err != nil:
		n.failures = append(n.failures, err)
	case answer.Held:
		n.hold(answer)
	default:
		n.without++
		if n.ballot != nil && n.ballot.repeat(i, n.request.Target, n.moves, func(v vote) { n.gain(i, v) }) {
			n.asked++
		}
	}
	n.settle()
}

// gain takes in whether a server votes that did not have the lease.
func (n *renewal) gain(i int, v vote) {
	n.mu.Lock()
	n.asked--
	if v.answer.Granted {
		n.gained = append(n.gained, i)
		n.hold(store.Renewal{Held: true, Since: v.answer.Since, Waiting: v.answer.Waiting})
	}
	n.settle()
}

// settle tells what is decided, once. It unlocks n.mu.
func (n *renewal) settle() {
	renewed, fault, decided := n.decide()
	tell := decided && !n.told
	n.told = n.told || tell
	var vain []int // votes for a lease that is lost
	if n.without > len(n.store.servers)-n.store.majority {
		vain, n.gained = n.gained, nil
	}
	n.mu.Unlock()
	for _, i := range vain {
		n.ballot.withdraw(i, n.request.Bound, func() {})
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
	n.answer.Waiting = max(n.answer.Waiting, answer.Waiting)
}

// decide returns what became of the lease, if that is known. Votes that were gained
// count only where it cannot turn out any more that it was lost before.
func (n *renewal) decide() (renewed store.Renewal, fault error, decided bool) {
	majority, servers := n.store.majority, len(n.store.servers)
	switch {
	case n.without > servers-majority:
		return store.Renewal{Since: n.answer.Since}, nil, true
	case n.held-len(n.gained) >= majority, n.held >= majority && n.without+n.left <= servers-majority:
		if same := n.store.muster.double(); same != nil {
			return store.Renewal{}, &store.Fault{Unknown: true, Temporary: true, Err: same}, true
		}
		renewed = n.answer
		renewed.Held = true
		return renewed, nil, true
	case n.left+n.asked > 0:
		return store.Renewal{}, nil, false
	case len(n.failures) == 0: // votes of others are in the way
		return store.Renewal{}, &store.Fault{Unknown: true, Temporary: true, Err: errNoMajority}, true
	default:
		return store.Renewal{}, n.store.blame(n.failures), true
	}
}

var errNoMajority = errors.New("no majority has the lease any more")
