package redisstore

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// vote asks for a vote with the ballot Me1. The waiter Me2 joins the queue if it is refused.
func vote(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := storetest.Request(storetest.Me1)
	r.Waiter = storetest.Me2
	return voteBy(t, s, r)
}

// voteOnce asks for a vote without a waiter.
func voteOnce(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := storetest.Request(storetest.Me1)
	r.Join = false
	return voteBy(t, s, r)
}

func voteBy(t *testing.T, s *syncStore, r storetest.AnyRequest) outcome {
	t.Helper()
	asked := time.Now()
	got, err := storetest.Await(t, func(done func(store.Answer, error)) { s.Vote(voteRequest(r), done) })
	return outcomeOf(t, asked, got, err)
}

// withdraw withdraws the ballot Me1, with a hint to the first waiter.
func withdraw(t *testing.T, s *syncStore) outcome {
	t.Helper()
	return withdrawBy(t, s, storetest.Request(storetest.Me1), true)
}

// withdrawAll withdraws the ballot Me1, and the waiter Me2 leaves the queue.
func withdrawAll(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := storetest.Request(storetest.Me1)
	r.Waiter = storetest.Me2
	return withdrawBy(t, s, r, true)
}

// withdrawQuietly withdraws the ballot Me1 without a hint.
func withdrawQuietly(t *testing.T, s *syncStore) outcome {
	t.Helper()
	return withdrawBy(t, s, storetest.Request(storetest.Me1), false)
}

// withdrawAndRejoin withdraws the ballot Me1, and the waiter Me2 joins the queue.
func withdrawAndRejoin(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := storetest.Request(storetest.Me1)
	r.Rejoin = storetest.Me2
	return withdrawBy(t, s, r, true)
}

func withdrawBy(t *testing.T, s *syncStore, r storetest.AnyRequest, wake bool) outcome {
	t.Helper()
	got, err := storetest.Await(t, func(done func(store.ReleaseResult, error)) { s.Withdraw(withdrawRequest(r, wake), done) })
	if err != nil {
		t.Fatal(err)
	}
	return outcome{status: got.Status}
}

// voteTransitions are the transitions of one server of a quorum.
var voteTransitions = []transitionTest{
	{
		name: "vote: free", do: vote,
		first: outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
	},
	{
		name: "vote: free, although others wait", do: vote, listening: []string{storetest.Bob},
		before: storetest.State{Queue: []string{storetest.Bob1, storetest.Me2, storetest.Eve1}},
		first:  outcome{granted: true, waiting: 2}, second: outcome{granted: true, waiting: 2},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, storetest.Me2, storetest.Eve1}},
	},
	{
		name: "vote: the own ballot, TTL raised", do: voteOnce,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1}},
		first:  outcome{granted: true, waiting: 1}, second: outcome{granted: true, waiting: 1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
	},
	{
		name: "vote: the own ballot, TTL never shortened", do: voteOnce,
		before: storetest.State{Value: storetest.Me1, TTL: time.Hour},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: time.Hour},
	},
	{
		name: "vote: another's ballot, hint sent, waiter joins", do: vote, listening: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Eve1}},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour}, second: outcome{holder: storetest.Bob1, remaining: time.Hour},
		after: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Eve1, storetest.Me2}},
		hints: []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "vote: another's ballot, without a waiter nothing changes", do: voteOnce, listening: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour}, second: outcome{holder: storetest.Bob1, remaining: time.Hour},
		after: storetest.State{Value: storetest.Bob1, TTL: time.Hour},
	},
	{
		name: "vote: a foreign client, no hint", do: vote,
		before: storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Eve1}},
		first:  outcome{holder: "other", remaining: time.Hour, foreign: true},
		second: outcome{holder: "other", remaining: time.Hour, foreign: true},
		after:  storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Eve1, storetest.Me2}},
	},
	{
		name: "withdraw the own ballot", do: withdraw,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
		first:  outcome{status: store.Freed}, second: outcome{status: store.NotHeld},
	},
	{
		name: "withdraw: hint to the first waiter that listens, which stays first", do: withdraw, listening: []string{storetest.Eve},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, "junk", storetest.Eve1, storetest.Bob2}},
		first:  outcome{status: store.Handed}, second: outcome{status: store.NotHeld},
		after: storetest.State{Queue: []string{storetest.Eve1, storetest.Bob2}},
		hints: []string{storetest.Eve1 + " p:k", storetest.Eve1 + " p:k"},
	},
	{
		name: "withdraw: waiters that do not listen leave the queue", do: withdraw,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, storetest.Eve1}},
		first:  outcome{status: store.Freed}, second: outcome{status: store.NotHeld},
	},
	{
		name: "withdraw, and the waiter leaves", do: withdrawAll, listening: []string{storetest.Me, storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Me2, storetest.Bob1}},
		first:  outcome{status: store.Handed}, second: outcome{status: store.NotHeld},
		after: storetest.State{Queue: []string{storetest.Bob1}},
		hints: []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "withdraw without a hint", do: withdrawQuietly, listening: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
		first:  outcome{status: store.Handed}, second: outcome{status: store.NotHeld},
		after: storetest.State{Queue: []string{storetest.Bob1}},
	},
	{
		name: "withdraw another's ballot", do: withdrawAll, listening: []string{storetest.Bob, storetest.Eve},
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Me1, storetest.Me2, storetest.Eve1}},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1}},
	},
	{
		name: "withdraw without a ballot: a waiter that leaves passes a hint on", do: withdraw, listening: []string{storetest.Bob},
		before: storetest.State{Queue: []string{storetest.Me1, storetest.Bob1}},
		after:  storetest.State{Queue: []string{storetest.Bob1}},
		hints:  []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "withdraw and rejoin behind another waiter", do: withdrawAndRejoin, listening: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
		first:  outcome{status: store.Handed}, second: outcome{status: store.NotHeld},
		after: storetest.State{Queue: []string{storetest.Bob1, storetest.Me2}},
		hints: []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "withdraw and rejoin alone: no queue", do: withdrawAndRejoin,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
		first:  outcome{status: store.Freed}, second: outcome{status: store.NotHeld},
	},
	{
		name: "withdraw another's ballot: does not rejoin", do: withdrawAndRejoin,
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1}},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1}},
	},
}

func voteRequest(r storetest.AnyRequest) VoteRequest {
	return VoteRequest{Target: r.Target(), Claim: r.Claim, Join: r.Join, Waiter: r.Waiter}
}

func withdrawRequest(r storetest.AnyRequest, wake bool) WithdrawRequest {
	return WithdrawRequest{Target: r.Target(), Claim: r.Claim, Waiter: r.Waiter, Rejoin: r.Rejoin, Wake: wake}
}
