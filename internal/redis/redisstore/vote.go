package redisstore

import (
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
)

// A VoteRequest asks one server of a quorum for its vote. The token of the target is a
// ballot.
type VoteRequest struct {
	store.Target
	// Claim is that of a store.EnqueueRequest.
	Claim time.Duration
	// Join adds Waiter to the queue of the server if the server does not vote for the ballot.
	Join   bool
	Waiter string
}

// A WithdrawRequest takes a vote back.
type WithdrawRequest struct {
	store.Target
	// Claim is that of a store.EnqueueRequest.
	Claim time.Duration
	// Waiter leaves the queue of the server, and Rejoin joins it; "" is none.
	Waiter, Rejoin string
	// Wake sends a hint to the first token of the queue.
	Wake bool
}

// Vote asks one server of a quorum for its vote: it runs vote.lua. The token is a
// ballot, and Waiter, if there is one, joins the line where Join is set.
func (s *Store) Vote(r VoteRequest, done func(store.Answer, error)) {
	t := s.asks.get()
	t.begin(s, t, r.Target, false, 0)
	t.sayScript(&s.scripts.Vote)
	t.sayKey(&t.line, keyspace.QueueSuffix)
	t.sayLine(r.Claim)
	t.args = append(t.args, t.waiter.set(r.Waiter), flag(r.Join))
	t.done, t.decode = done, decodeEnqueue
	s.pipeline.Do(&t.Call, pipeline.Acquire)
}

// Withdraw takes a vote back: it runs withdraw.lua. Waiter leaves the line with it,
// and Rejoin joins it. Wake tells the first of the line that the vote is free. The
// End is Freed, Handed where somebody waits, NotHeld or Unsure.
func (s *Store) Withdraw(r WithdrawRequest, done func(store.ReleaseResult, error)) {
	t := s.releases.get()
	t.begin(s, t, r.Target, false, 0)
	t.rejoin = r.Rejoin
	t.sayScript(&s.scripts.Withdraw)
	t.sayKey(&t.line, keyspace.QueueSuffix)
	t.sayLine(r.Claim)
	t.args = append(t.args, t.waiter.set(r.Waiter), t.rejoined.set(r.Rejoin), flag(r.Wake))
	t.done, t.decode = done, decodeWithdraw
	s.pipeline.Do(&t.Call, pipeline.Release)
}

// flag is how scripts are told yes or no.
func flag(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// decodeWithdraw reads the answer of withdraw.lua.
func decodeWithdraw(r pipeline.Reply, _ *operation) (store.ReleaseResult, error) {
	if r.Err != nil {
		return store.ReleaseResult{}, r.Err
	}
	number, isNumber := r.Value.(int64)
	if !isNumber || number < 0 || number > int64(store.Handed) {
		return store.ReleaseResult{}, command.UnexpectedReply(r.Value)
	}
	return store.ReleaseResult{Status: ends[number], Since: r.Sent}, nil
}
