package redisstore

import (
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
)

// A VoteRequest asks one server of a quorum for its vote. Its token is a ballot.
type VoteRequest struct {
	store.Target
	// Claim has the meaning of store.EnqueueRequest.Claim.
	Claim time.Duration
	// Join adds Waiter to the queue of the server if the server does not vote for the ballot.
	Join   bool
	Waiter string
	// Brief asks by the cheapest command, which neither reports how many tokens wait, nor the
	// remaining time of a holder. The server must not have received the ballot before. It has
	// no effect with Join.
	Brief bool
}

// A WithdrawRequest takes a vote back.
type WithdrawRequest struct {
	store.Target
	// Claim has the meaning of store.EnqueueRequest.Claim.
	Claim time.Duration
	// Waiter leaves the queue of the server, and Rejoin joins it; "" is none.
	Waiter, Rejoin string
	// Wake sends a hint to the first token of the queue.
	Wake bool
	// NoWaiters is true if no token is known to wait for the key.
	NoWaiters bool
}

// Vote runs vote.lua, or does what Take does if r.Brief is set. It does not block: it calls done with the
// answer, or with a fault.
func (s *Store) Vote(r VoteRequest, done func(store.Answer, error)) {
	t := s.acquires.get()
	t.init(s, t, r.Target, false, 0)
	t.done, t.decode = done, decodeVote
	if r.Brief && !r.Join {
		t.withHolder = true // it shows how the votes are split
		t.encodeTake()
		t.decode = decodeBriefVote
		s.pipeline.Do(&t.Call, pipeline.Acquire)
		return
	}
	t.encodeScript(&s.scripts.Vote)
	t.encodeKey(&t.queue, keyspace.QueueSuffix)
	t.encodeQueue(r.Claim)
	t.args = append(t.args, t.waiter.setString(r.Waiter), boolArg(r.Join))
	s.pipeline.Do(&t.Call, pipeline.Acquire)
}

// Withdraw runs withdraw.lua. It does not block: it calls done with the result, or with a
// fault. The status is Freed, Handed if the queue has a waiter, NotHeld or Unsure.
func (s *Store) Withdraw(r WithdrawRequest, done func(store.ReleaseResult, error)) {
	t := s.releases.get()
	t.init(s, t, r.Target, false, 0)
	t.encodeScript(&s.scripts.Withdraw)
	t.encodeKey(&t.queue, keyspace.QueueSuffix)
	if r.NoWaiters {
		t.brief = briefRelease
	}
	t.encodeQueue(r.Claim)
	t.args = append(t.args, t.waiter.setString(r.Waiter), t.rejoinToken.setString(r.Rejoin), boolArg(r.Wake))
	t.done, t.decode = done, decodeWithdraw
	s.pipeline.Do(&t.Call, pipeline.Release)
}

// decodeWithdraw decodes the reply of withdraw.lua.
func decodeWithdraw(r pipeline.Reply, _ *operation) (store.ReleaseResult, error) {
	if r.Err != nil {
		return store.ReleaseResult{}, r.Err
	}
	number, isNumber := r.Value.(int64)
	if !isNumber || number < 0 || number > int64(store.Handed) {
		return store.ReleaseResult{}, command.UnexpectedReply(r.Value)
	}
	return store.ReleaseResult{Status: releaseCodes[number], Since: r.Sent}, nil
}
