package quorumstore

import (
	"sync"

	"github.com/reqlock/reqlock/internal/store"
)

// Release takes all votes back, wherever they are, and wakes a waiter at each
// server. Rejoin joins the lines where somebody else waits.
func (s *Store) Release(r store.Request, done func(store.Released, error)) {
	r.Inline = false
	e := &ending{store: s, request: r, done: done, left: len(s.servers), granted: make([]bool, len(s.servers))}
	if b := s.ballotOf(r.Token); b != nil {
		s.forget(r.Token)
		e.granted, r.Waiter = b.end(), b.request.Waiter
	}
	for i, one := range s.servers {
		one.Withdraw(r, true, func(released store.Released, err error) { e.hear(i, released, err) })
	}
}

// An ending is one Release.
type ending struct {
	store   *Store
	request store.Request
	done    func(store.Released, error)
	granted []bool // by server: it had voted for it

	mu       sync.Mutex
	left     int // servers whose answer has not come
	ends     [store.Unsure + 1]int
	failures []error
	told     bool
	held     bool // by a server that did not answer
}

// hear takes in the answer of a server.
func (e *ending) hear(i int, released store.Released, err error) {
	e.mu.Lock()
	e.left--
	if err != nil {
		e.failures = append(e.failures, err)
		_, passing := natureOf(err)
		e.held = e.held || (passing && e.granted[i])
	} else {
		e.ends[released.End]++
	}
	end, fault, decided := e.decide()
	tell := decided && !e.told
	e.told = e.told || tell
	stays := e.left == 0 && e.held && fault == nil
	e.mu.Unlock()
	if tell {
		e.done(store.Released{End: end}, fault)
	}
	if stays { // a majority is free, and one vote has to be taken back once more
		e.store.echoes.tell(e.request.Key, e.request.Token)
	}
}

// decide returns what became of the lease, if that is known.
func (e *ending) decide() (end store.End, fault error, decided bool) { //nolint:revive // a fault is one of the results
	majority, servers := e.store.majority, len(e.store.servers)
	switch freed := e.ends[store.Freed] + e.ends[store.Handed]; {
	case freed >= majority && e.ends[store.Handed] > 0:
		return store.Handed, nil, true
	case freed >= majority:
		return store.Freed, nil, true
	case e.ends[store.NotHeld] > servers-majority:
		return store.NotHeld, nil, true
	case e.left > 0:
		return 0, nil, false
	case len(e.failures) > 0:
		return 0, e.fault(), true
	default:
		return store.Unsure, nil, true
	}
}

// fault returns why it is not known whether a majority is free.
func (e *ending) fault() error {
	if err := e.store.failure(e.failures); err != nil {
		return err
	}
	unknown, passing := natureOf(e.failures[0])
	return &store.Fault{Unknown: unknown, Passing: passing, Err: e.failures[0]}
}
