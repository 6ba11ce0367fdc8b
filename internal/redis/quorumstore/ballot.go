package quorumstore

import (
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/store"
)

// A ballot is one request to all servers for a lock, with the votes that it got. If it is
// granted, its token is the token of the lease.
type ballot struct {
	store   *Store
	request redisstore.VoteRequest
	begun   time.Time
	done    func(store.Answer, error)

	mu         sync.Mutex
	maxTTL     time.Duration // the longest TTL that any vote was requested with
	votes      []vote        // by server
	asks       []int         // by server: how many votes were requested
	decided    bool
	stragglers *stragglerWait // nil until boundStragglers has limited the wait
	// withdrawn is true after the ballot was lost or released. Votes that arrive later
	// are withdrawn, too.
	withdrawn bool
	// departures has, by server, the withdrawal that the release of the lease has sent.
	departures []departure
	// withdrawing counts the withdrawals that must end before done is called with answer
	// and err.
	withdrawing int
	answer      store.Answer
	err         error
}

// A vote is the reply of a server.
type vote struct {
	answered bool
	answer   store.Answer
	err      error
}

// mayBeGranted reports whether the server may have voted for the ballot.
func (v vote) mayBeGranted() bool {
	if v.err != nil {
		return store.FaultOf(v.err).Unknown
	}
	return v.answer.Granted || !v.answered
}

// newBallot returns a ballot without votes.
func newBallot(s *Store, r redisstore.VoteRequest, done func(store.Answer, error)) *ballot {
	return &ballot{store: s, request: r, begun: time.Now(), done: done, maxTTL: r.TTL, votes: make([]vote, len(s.servers)), asks: make([]int, len(s.servers))}
}

// ask sends the request r to a server. It records the vote in the ballot, and then calls then
// with that vote. A granted vote does not count if another process is behind the client than
// in the given generations: see membership.replaced.
func (b *ballot) ask(i int, r redisstore.VoteRequest, generations []int, then func(vote)) {
	m, asked := b.store.membership, time.Now()
	b.mu.Lock()
	b.asks[i]++
	b.mu.Unlock()
	b.store.servers[i].Vote(r, func(answer store.Answer, err error) {
		v := vote{true, answer, err}
		switch {
		case err != nil:
			m.recordFailure(i)
		case answer.Granted && m.replaced(i, generations):
			v = vote{answered: true, err: &store.Fault{Unknown: true, Temporary: true, Err: errReplaced}}
		default:
			m.recordLatency(i, time.Since(asked))
		}
		b.record(i, v)
		then(v)
	})
}

// record stores the vote of a server, and delivers the result if the vote decides the ballot. A
// request that was not sent, or that the server has refused with an error, says nothing about an
// earlier vote.
func (b *ballot) record(i int, v vote) {
	b.mu.Lock()
	earlier, saysNothing := b.votes[i], v.err != nil && !v.mayBeGranted()
	if keeps := saysNothing && earlier.answered && earlier.mayBeGranted(); !keeps {
		b.votes[i] = v
	}
	withdrawn := b.withdrawn
	decides := !b.decided && b.decide()
	if b.decided {
		b.stragglers.end()
	} else {
		b.boundStragglers()
	}
	b.mu.Unlock()
	switch {
	case !withdrawn:
	case v.answer.Granted:
		if b.isStray(i, v.answer) {
			b.withdraw(i, b.request.Bound, func() {})
		}
	case v.mayBeGranted():
		b.withdrawUnknown(i)
	}
	if decides {
		b.deliver()
	}
}

// decide decides the ballot if the recorded votes allow that, and reports whether they do.
// The caller holds b.mu.
func (b *ballot) decide() bool {
	count, majority := b.count(), b.store.majority
	switch {
	case count.granted >= majority && b.restKnown():
		b.answer, b.err = b.granted()
	case count.granted+count.missing < majority && b.reasonKnown(count) && b.restKnown():
		b.answer, b.err = b.refused()
	default:
		return false
	}
	b.decided, b.withdrawn = true, b.withdrawn || !b.answer.Granted
	return true
}

// deliver calls done with the result. If the ballot is lost, deliver first withdraws its
// votes: otherwise a client that retries at once could be refused by its own old votes.
// done waits for the withdrawals of granted votes, for at most half the bound. It does not
// wait for servers that have not voted.
func (b *ballot) deliver() {
	if b.answer.Granted {
		b.done(b.answer, b.err)
		return
	}
	b.store.removeBallot(b.request.Target)
	var granted, unknown []int
	b.mu.Lock()
	for i, v := range b.votes {
		switch {
		case v.answer.Granted:
			granted = append(granted, i)
		case v.answered && v.mayBeGranted():
			unknown = append(unknown, i)
		}
	}
	bound, then := b.request.Bound, func() {}
	b.withdrawing = 1
	if time.Since(b.begun) < bound/2 {
		bound, then = bound/2, b.endWithdrawal
		b.withdrawing += len(granted)
	}
	b.mu.Unlock()
	for _, i := range granted {
		b.withdraw(i, bound, then)
	}
	for _, i := range unknown {
		b.withdrawUnknown(i)
	}
	b.endWithdrawal()
}

// endWithdrawal counts a withdrawal as ended. After the last one it calls done.
func (b *ballot) endWithdrawal() {
	b.mu.Lock()
	b.withdrawing--
	last := b.withdrawing == 0
	b.mu.Unlock()
	if last {
		b.done(b.answer, b.err)
	}
}

// withdraw withdraws the vote of a server. The server notifies no waiter, because a client
// that lost a ballot retries by itself. The waiter of the ballot stays in the queue.
func (b *ballot) withdraw(i int, bound time.Duration, then func()) {
	r := b.withdrawal()
	r.Bound = bound
	b.store.servers[i].Withdraw(r, func(_ store.ReleaseResult, err error) {
		if isTemporary(err) {
			b.store.withdrawals[i].retryLater(b.withdrawal(), b.raiseTTL(0))
		}
		then()
	})
}

// withdrawUnknown withdraws the vote of a server that did not reply. If the server has not
// replied to an earlier withdrawal either, the next retry withdraws this vote, too: otherwise
// a server that replies too late would get more commands the longer that lasts.
func (b *ballot) withdrawUnknown(i int) {
	if w := b.store.withdrawals[i]; w.isRetrying() {
		w.retryLater(b.withdrawal(), b.raiseTTL(0))
	} else {
		b.withdraw(i, b.request.Bound, func() {})
	}
}

// withdrawal returns the request that withdraws a vote.
func (b *ballot) withdrawal() redisstore.WithdrawRequest {
	r := redisstore.WithdrawRequest{Target: b.request.Target, Claim: b.request.Claim}
	r.Bound = b.request.Bound
	return r
}

// raiseTTL records that a vote is requested with this TTL. It returns the longest TTL so far.
func (b *ballot) raiseTTL(ttl time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.maxTTL = max(b.maxTTL, ttl)
	return b.maxTTL
}

// endLease ends the lease of the ballot. It returns which servers may have voted for the
// ballot, and the longest TTL of such a vote.
func (b *ballot) endLease() (mayHold []bool, maxTTL time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.withdrawn = true
	mayHold = make([]bool, len(b.votes))
	b.departures = make([]departure, len(b.votes))
	for i, v := range b.votes {
		mayHold[i] = v.mayBeGranted()
		if !v.answered {
			b.departures[i] = leaving
		}
	}
	return mayHold, b.maxTTL
}

// askAgain asks a server without the lease for its vote again, with the TTL and the bound of
// a renewal. The waiter does not join the queue. If the lease has ended, askAgain sends
// nothing and returns false.
func (b *ballot) askAgain(i int, renewal store.Target, generations []int, then func(vote)) bool {
	b.mu.Lock()
	withdrawn := b.withdrawn
	b.mu.Unlock()
	if withdrawn {
		return false
	}
	r := b.request
	r.TTL, r.Bound, r.Join, r.Brief = renewal.TTL, renewal.Bound, false, false
	b.ask(i, r, generations, then)
	return true
}
