package quorumstore

import (
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/store"
)

// Release takes all votes back, wherever they are, and wakes a waiter at each
// server. Rejoin joins the lines where somebody else waits.
func (s *Store) Release(r store.ReleaseRequest, done func(store.ReleaseResult, error)) {
	withdraw := redisstore.WithdrawRequest{
		Target: r.Target, Claim: r.Claim, Waiter: r.Waiter, Rejoin: r.Rejoin, Wake: true,
	}
	e := &ending{
		store: s, begun: time.Now(), done: done, left: len(s.servers), voted: make([]bool, len(s.servers)),
	}
	if b := s.ballotOf(r.Target); b != nil {
		s.forget(r.Target)
		e.voted, e.life = b.end()
		withdraw.Waiter = b.request.Waiter
	}
	e.request = withdraw
	for i, one := range s.servers {
		one.Withdraw(withdraw, func(released store.ReleaseResult, err error) { e.hear(i, released, err) })
	}
}

// An ending is one Release.
type ending struct {
	store   *Store
	request redisstore.WithdrawRequest
	begun   time.Time
	done    func(store.ReleaseResult, error)
	voted   []bool        // by server: it may have voted for it
	life    time.Duration // how long such a vote may live

	mu       sync.Mutex
	left     int // servers whose answer has not come
	ends     [store.Unsure + 1]int
	failures []error
	told     bool
	// hurries is true once the rest is not waited for much longer, and late once it
	// is not waited for any more.
	hurries, late bool
}

// hear takes in the answer of a server. From one that does not answer its vote is
// taken back later, if it may have given it; who rejoins may have left again by then.
func (e *ending) hear(i int, released store.ReleaseResult, err error) {
	if e.voted[i] && retries(err) {
		r := e.request
		r.Rejoin = ""
		e.store.debts[i].owe(r, e.life)
	}
	e.mu.Lock()
	e.left--
	if err != nil {
		e.failures = append(e.failures, err)
	} else {
		e.ends[released.Status]++
	}
	e.settle()
}

// settle tells what is decided, once. It unlocks e.mu.
func (e *ending) settle() {
	end, fault, decided := e.decide()
	tell := decided && !e.told
	e.told = e.told || tell
	if !e.told && !e.hurries && e.isFree() {
		e.hurries = true
		e.store.hurry(e.begun, shortestHurry, e.hurry)
	}
	e.mu.Unlock()
	if tell {
		e.done(store.ReleaseResult{Status: end}, fault)
	}
}

// hurry ends the wait for the rest.
func (e *ending) hurry() {
	e.mu.Lock()
	e.late = true
	e.settle()
}

// isFree reports whether a majority of servers does not have the lease any more.
// Then it is in nobody's way.
func (e *ending) isFree() bool {
	return e.ends[store.Freed]+e.ends[store.Handed]+e.ends[store.NotHeld]+e.ends[store.Unsure] >= e.store.majority
}

// decide returns what became of the lease, if that is known. It was lost where so
// many servers did not have it that it had no majority.
func (e *ending) decide() (end store.ReleaseStatus, fault error, decided bool) {
	majority, servers := e.store.majority, len(e.store.servers)
	freed := e.ends[store.Freed] + e.ends[store.Handed]
	switch {
	case e.ends[store.NotHeld] > servers-majority:
		return store.NotHeld, nil, true
	case freed < majority && e.left > 0 && (!e.late || !e.isFree()):
		return 0, nil, false
	case !e.isFree():
		return 0, e.store.blame(e.failures), true
	case freed == 0:
		return store.Unsure, nil, true
	case e.ends[store.Handed] > 0:
		return store.Handed, nil, true
	default:
		return store.Freed, nil, true
	}
}
