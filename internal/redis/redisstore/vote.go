package redisstore

import (
	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
)

// Vote asks one server of a quorum for its vote: it runs vote.lua. The token is a
// ballot, and Waiter, if there is one, joins the line where Join is set.
func (s *Store) Vote(r store.Request, done func(store.Answer, error)) {
	t := s.asks.get()
	t.begin(s, t, &r)
	t.sayScript(&s.scripts.Vote, &r)
	t.sayKey(&t.line, keyspace.QueueSuffix)
	t.sayLine(&r)
	t.args = append(t.args, t.waiter.set(r.Waiter), flag(r.Join))
	t.done, t.decode = done, decodeEnqueue
	s.pipeline.Do(&t.Call, pipeline.Acquire)
}

// Withdraw takes a vote back: it runs withdraw.lua. Waiter leaves the line with it,
// and Rejoin joins it. wake tells the first of the line that the vote is free. The
// End is Freed, Handed where somebody waits, NotHeld or Unsure.
func (s *Store) Withdraw(r store.Request, wake bool, done func(store.ReleaseResult, error)) {
	t := s.releases.get()
	t.begin(s, t, &r)
	t.sayScript(&s.scripts.Withdraw, &r)
	t.sayKey(&t.line, keyspace.QueueSuffix)
	t.sayLine(&r)
	t.args = append(t.args, t.waiter.set(r.Waiter), t.rejoined.set(r.Rejoin), flag(wake))
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
