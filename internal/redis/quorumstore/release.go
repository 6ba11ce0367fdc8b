package quorumstore

import (
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/store"
)

// Release withdraws all votes for the token from all servers. Each server notifies its first
// waiter. Rejoin joins the queue of a server where another waiter is queued.
func (s *Store) Release(r store.ReleaseRequest, done func(store.ReleaseResult, error)) {
	withdraw := redisstore.WithdrawRequest{
		Target: r.Target, Claim: r.Claim, Waiter: r.Waiter, Rejoin: r.Rejoin, Wake: true, NoWaiters: r.NoWaiters && r.Rejoin == "",
	}
	round := &releaseRound{
		store: s, begun: time.Now(), done: done, missing: len(s.servers), mayHold: make([]bool, len(s.servers)),
	}
	b := s.ballotOf(r.Target)
	if b != nil {
		s.removeBallot(r.Target)
		round.mayHold, round.maxTTL = b.endLease()
		withdraw.Waiter = b.request.Waiter
	}
	round.request = withdraw
	for i, one := range s.servers {
		one.Withdraw(withdraw, func(released store.ReleaseResult, err error) {
			if b != nil {
				b.endDeparture(i, err == nil && (released.Status == store.Freed || released.Status == store.Handed))
			}
			round.record(i, released, err)
		})
	}
}

// A releaseRound is one Release on all servers.
type releaseRound struct {
	store   *Store
	request redisstore.WithdrawRequest
	begun   time.Time
	done    func(store.ReleaseResult, error)
	mayHold []bool        // by server: whether it may have voted for the token
	maxTTL  time.Duration // the longest TTL of such a vote

	mu         sync.Mutex
	missing    int                   // servers that have not replied
	counts     [store.Unsure + 1]int // replies, by status
	failures   []error
	delivered  bool
	stragglers *stragglerWait // nil until boundStragglers has limited the wait
	waitOver   bool           // the remaining servers have had their time
}

// record counts the reply of a server. If the server failed and may have voted, its vote is
// withdrawn later, without Rejoin: the waiter may have left again by then.
func (r *releaseRound) record(i int, released store.ReleaseResult, err error) {
	if r.mayHold[i] && isTemporary(err) {
		request := r.request
		request.Rejoin = ""
		r.store.withdrawals[i].retryLater(request, r.maxTTL)
	}
	r.mu.Lock()
	r.missing--
	if err != nil {
		r.failures = append(r.failures, err)
	} else {
		r.counts[released.Status]++
	}
	r.deliver()
}

// deliver calls done once the result is decided. It unlocks r.mu.
func (r *releaseRound) deliver() {
	status, fault, decided := r.decide()
	delivers := decided && !r.delivered
	r.delivered = r.delivered || delivers
	switch {
	case r.delivered:
		r.stragglers.end()
	case r.stragglers == nil && r.isFree():
		r.stragglers = r.store.boundStragglers(r.begun, minStragglerWait, r.endWait)
	}
	r.mu.Unlock()
	if delivers {
		r.done(store.ReleaseResult{Status: status}, fault)
	}
}

// endWait ends the wait for the remaining servers.
func (r *releaseRound) endWait() {
	r.mu.Lock()
	r.waitOver = true
	r.deliver()
}

// isFree reports whether a majority of the servers does not have the lease any more, so that
// another client can be granted the lock.
func (r *releaseRound) isFree() bool {
	return r.counts[store.Freed]+r.counts[store.Handed]+r.counts[store.NotHeld]+r.counts[store.Unsure] >= r.store.majority
}

// decide returns the result of the release, if it is decided. The lease was lost if too few
// servers had it for a majority.
func (r *releaseRound) decide() (status store.ReleaseStatus, fault error, decided bool) {
	majority, servers := r.store.majority, len(r.store.servers)
	freed := r.counts[store.Freed] + r.counts[store.Handed]
	switch {
	case r.counts[store.NotHeld] > servers-majority:
		return store.NotHeld, nil, true
	case freed < majority && r.missing > 0 && (!r.waitOver || !r.isFree()):
		return 0, nil, false
	case !r.isFree():
		return 0, r.store.unknownOutcome(r.failures), true
	case freed == 0:
		return store.Unsure, nil, true
	case r.counts[store.Handed] > 0:
		return store.Handed, nil, true
	default:
		return store.Freed, nil, true
	}
}
