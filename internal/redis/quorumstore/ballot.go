package quorumstore

import (
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/store"
)

// A ballot is one question to all servers, and what has become of it: it was lost,
// or is the token of a lease.
type ballot struct {
	store   *Store
	request redisstore.VoteRequest
	begun   time.Time
	done    func(store.Answer, error)

	mu      sync.Mutex
	life    time.Duration // no vote was asked for a longer one
	votes   []vote        // by server
	decided bool
	hurries bool // see hurry
	// over is true once it was withdrawn: votes that come now are withdrawn, too.
	over bool
	// leaving counts the votes whose withdrawal done waits for, to tell it of answer
	// and err.
	leaving int
	answer  store.Answer
	err     error
}

// A vote is the answer of a server.
type vote struct {
	answered bool
	answer   store.Answer
	err      error
}

// mayBeOurs reports whether the server may have voted for the ballot.
func (v vote) mayBeOurs() bool {
	if v.err != nil {
		return store.FaultOf(v.err).Unknown
	}
	return v.answer.Granted || !v.answered
}

// newBallot returns one on which nobody has voted.
func newBallot(s *Store, r redisstore.VoteRequest, done func(store.Answer, error)) *ballot {
	return &ballot{store: s, request: r, begun: time.Now(), done: done, life: r.TTL, votes: make([]vote, len(s.servers))}
}

// ask asks a server for its vote, for this ballot and with the words of r, and calls
// then with what counts of its answer, once the ballot knows that. A vote does not
// count where the server has moved since those moves: see muster.moved.
func (b *ballot) ask(i int, r redisstore.VoteRequest, moves []int, then func(vote)) {
	m, asked := b.store.muster, time.Now()
	b.store.servers[i].Vote(r, func(answer store.Answer, err error) {
		v := vote{true, answer, err}
		switch {
		case err != nil:
			m.miss(i)
		case answer.Granted && m.moved(i, moves):
			v = vote{answered: true, err: &store.Fault{Unknown: true, Temporary: true, Err: errMoved}}
		default:
			m.heard(i, time.Since(asked))
		}
		b.hear(i, v)
		then(v)
	})
}

// hear takes in the answer of a server.
func (b *ballot) hear(i int, v vote) {
	b.mu.Lock()
	b.votes[i] = v
	over := b.over
	decides := !b.decided && b.decide()
	if !b.decided {
		b.hurry()
	}
	b.mu.Unlock()
	if over && v.mayBeOurs() {
		b.withdraw(i, b.request.Bound, func() {})
	}
	if decides {
		b.tell()
	}
}

// decide decides the ballot if the votes that are there do so, and reports whether
// they did. If it is lost, nobody has it from now on.
func (b *ballot) decide() bool {
	count, majority := b.count(), b.store.majority
	switch {
	case count.granted >= majority && b.knowsRest():
		b.answer, b.err = b.granted()
	case count.granted < majority && count.granted+count.left < majority && b.known(count) && b.knowsRest():
		b.answer, b.err = b.refused()
	default:
		return false
	}
	b.decided, b.over = true, b.over || !b.answer.Granted
	return true
}

// tell tells what was decided, once a ballot that is lost is withdrawn from those
// who have voted for it: who asks again at once is not to meet itself. It does not
// wait for those who have not answered, nor for long.
func (b *ballot) tell() {
	if b.answer.Granted {
		b.done(b.answer, b.err)
		return
	}
	b.store.forget(b.request.Target)
	waits := time.Since(b.begun) < b.request.Bound/2
	var granted, others []int
	b.mu.Lock()
	for i, v := range b.votes {
		switch {
		case v.answer.Granted && waits:
			granted = append(granted, i)
		case v.answered && v.mayBeOurs():
			others = append(others, i)
		}
	}
	b.leaving = len(granted) + 1
	b.mu.Unlock()
	for _, i := range granted {
		b.withdraw(i, b.request.Bound/2, b.left)
	}
	for _, i := range others {
		b.withdraw(i, b.request.Bound, func() {})
	}
	b.left()
}

// left counts a withdrawal as ended, and after the last one tells what was decided.
func (b *ballot) left() {
	b.mu.Lock()
	b.leaving--
	last := b.leaving == 0
	b.mu.Unlock()
	if last {
		b.done(b.answer, b.err)
	}
}

// withdraw takes the vote of a server back, and wakes nobody: who has lost a vote
// asks again by himself. The waiter stays in line.
func (b *ballot) withdraw(i int, bound time.Duration, then func()) {
	r := redisstore.WithdrawRequest{Target: b.request.Target, Claim: b.request.Claim}
	r.Bound = bound
	b.store.servers[i].Withdraw(r, func(_ store.ReleaseResult, err error) {
		if retries(err) {
			b.store.debts[i].owe(r, b.longest(0))
		}
		then()
	})
}

// longest notes that votes are asked for so long a life, and returns the longest one.
func (b *ballot) longest(ttl time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.life = max(b.life, ttl)
	return b.life
}

// end ends the lease of the ballot. It returns which servers may have voted for it, and
// how long such a vote may live.
func (b *ballot) end() (voted []bool, life time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	voted = make([]bool, len(b.votes))
	for i, v := range b.votes {
		voted[i] = v.mayBeOurs()
	}
	return voted, b.life
}

// repeat asks a server that does not have the lease for its vote again, with the life
// and the bound of a renewal. The waiter does not join the line. It reports whether the
// server was asked: not where the lease is over.
func (b *ballot) repeat(i int, renewal store.Target, moves []int, then func(vote)) bool {
	b.mu.Lock()
	over := b.over
	b.mu.Unlock()
	if over {
		return false
	}
	r := b.request
	r.TTL, r.Bound, r.Join = renewal.TTL, renewal.Bound, false
	b.ask(i, r, moves, then)
	return true
}
