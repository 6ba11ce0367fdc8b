package quorumstore

import (
	"sync"

	"github.com/reqlock/reqlock/internal/store"
)

// Renew raises the TTL of the lease on all servers that have the lease, and asks the other
// servers for their votes again. It succeeds if a majority then has the lease. The lease is
// lost if so many servers had lost it that another client may have had a majority meanwhile.
func (s *Store) Renew(r store.RenewRequest, done func(store.Renewal, error)) {
	n := &renewRound{
		store: s, ballot: s.ballotOf(r.Target), request: r, generations: s.membership.generations(), done: done, missing: len(s.servers),
	}
	if n.ballot != nil {
		n.ballot.raiseTTL(r.TTL)
	}
	for i, one := range s.servers {
		one.Renew(r, func(answer store.Renewal, err error) { n.record(i, answer, err) })
	}
}

// A renewRound is one Renew on all servers.
type renewRound struct {
	store       *Store
	ballot      *ballot // nil if it is unknown
	request     store.RenewRequest
	generations []int // see membership.replaced
	done        func(store.Renewal, error)

	mu           sync.Mutex
	missing      int   // servers that have not replied to the renewal
	missingVotes int   // servers that were asked for their votes again, and have not replied
	held         int   // servers that have the lease
	gained       []int // the servers among them that did not have the lease before
	without      int   // servers that did not have the lease before
	answer       store.Renewal
	failures     []error
	delivered    bool
}

// record counts the reply of a server to the renewal.
func (n *renewRound) record(i int, answer store.Renewal, err error) {
	if err == nil && n.store.membership.replaced(i, n.generations) {
		err = &store.Fault{Unknown: true, Temporary: true, Err: errReplaced}
	}
	n.mu.Lock()
	n.missing--
	switch {
	case err != nil:
		n.failures = append(n.failures, err)
	case answer.Held:
		n.addHeld(answer)
	default:
		n.without++
		if n.ballot != nil && n.ballot.askAgain(i, n.request.Target, n.generations, func(v vote) { n.recordVote(i, v) }) {
			n.missingVotes++
		}
	}
	n.deliver()
}

// recordVote counts the vote of a server that did not have the lease.
func (n *renewRound) recordVote(i int, v vote) {
	n.mu.Lock()
	n.missingVotes--
	if v.answer.Granted {
		n.gained = append(n.gained, i)
		n.addHeld(store.Renewal{Held: true, Since: v.answer.Since, Waiting: v.answer.Waiting})
	}
	n.deliver()
}

// deliver calls done once the result is decided. If the lease is lost, deliver withdraws the
// votes that the renewal gained. It unlocks n.mu.
func (n *renewRound) deliver() {
	renewed, fault, decided := n.decide()
	delivers := decided && !n.delivered
	n.delivered = n.delivered || delivers
	var useless []int
	if n.without > len(n.store.servers)-n.store.majority {
		useless, n.gained = n.gained, nil
	}
	n.mu.Unlock()
	for _, i := range useless {
		n.ballot.withdraw(i, n.request.Bound, func() {})
	}
	if delivers {
		n.done(renewed, fault)
	}
}

// addHeld counts a server that has the lease. The validity of the lease starts at the oldest
// of these answers. The number of waiters is the largest of these answers.
func (n *renewRound) addHeld(answer store.Renewal) {
	n.held++
	if n.held == 1 || answer.Since.Before(n.answer.Since) {
		n.answer.Since = answer.Since
	}
	n.answer.Waiting = max(n.answer.Waiting, answer.Waiting)
}

// decide returns the result of the renewal, if it is decided. Gained votes count only when the
// remaining replies cannot show that the lease was lost before.
func (n *renewRound) decide() (renewed store.Renewal, fault error, decided bool) {
	majority, servers := n.store.majority, len(n.store.servers)
	switch {
	case n.without > servers-majority:
		return store.Renewal{Since: n.answer.Since}, nil, true
	case n.held >= majority && n.without+n.missing <= servers-majority:
		if duplicate := n.store.membership.duplicate(); duplicate != nil {
			return store.Renewal{}, &store.Fault{Unknown: true, Temporary: true, Err: duplicate}, true
		}
		renewed = n.answer
		renewed.Held = true
		return renewed, nil, true
	case n.missing+n.missingVotes > 0:
		return store.Renewal{}, nil, false
	default: // at least one server failed: otherwise a majority has the lease, or has lost it
		return store.Renewal{}, n.store.unknownOutcome(n.failures), true
	}
}
