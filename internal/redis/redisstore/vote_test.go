package redisstore

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func waits(r *storetest.AnyRequest) { r.Waiter = storetest.Me2 }

// Votes are for the ballot Me1. The waiter Me2 joins the queue if the ballot is refused.
var vote, voteOnce, voteBriefly = voting(waits), voting(withoutJoin), voting(withoutHolder)

func voting(changes ...change) transition {
	return func(t *testing.T, s *syncStore) (outcome, error) {
		t.Helper()
		r, asked := changed(changes), time.Now()
		got, err := storetest.Await(t, func(done func(store.Answer, error)) { s.Vote(voteRequest(r), done) })
		return outcomeOf(t, &r, asked, got), err
	}
}

// withdraw withdraws the ballot Me1, with a hint to the first waiter. The waiter Me2 leaves the
// queue with withdrawAll, and joins it with withdrawAndRejoin.
var withdraw, withdrawAll, withdrawAndRejoin, withdrawQuietly = withdrawing(true), withdrawing(true, waits), withdrawing(true, rejoins), withdrawing(false)

func withdrawing(wake bool, changes ...change) transition {
	return func(t *testing.T, s *syncStore) (outcome, error) {
		t.Helper()
		got, err := storetest.Await(t, func(done func(store.ReleaseResult, error)) {
			s.Withdraw(withdrawRequest(changed(changes), wake, s.noWaiters), done)
		})
		return outcome{status: got.Status}, err
	}
}

// voteTransitions are the transitions of one server of a quorum.
var voteTransitions = testsOf([]transitionRow{
	{name: "vote: free", do: vote, first: "granted", after: "A1 ttl"},
	{name: "vote: free, although others wait", do: vote, listening: "B", before: "| B1 A2 C1", first: "granted, waiting 2", after: "A1 ttl | B1 A2 C1"},
	{name: "vote: the own ballot, TTL raised", do: voteOnce, before: "A1 claim | B1", first: "granted, waiting 1", after: "A1 ttl | B1"},
	{name: "vote: the own ballot, TTL never shortened", do: voteOnce, before: "A1 1h", first: "granted", after: "="},
	{name: "vote: another's ballot, hint sent, waiter joins", do: vote, listening: "B", before: "B1 1h | C1", first: "by B1, left 1h", after: "B1 1h | C1 A2", hints: "B1 B1"},
	{name: "vote: another's ballot, without a waiter nothing changes", do: voteOnce, listening: "B", before: "B1 1h", first: "by B1, left 1h", after: "="},
	{name: "vote: a foreign client, no hint", do: vote, before: "other! 1h | C1", first: "by other!, left 1h, foreign", after: "other! 1h | C1 A2"},
	{name: "vote briefly: free", do: voteBriefly, first: "granted, waiting -1", after: "A1 ttl"},
	{name: "vote briefly: free, although others wait", do: voteBriefly, listening: "B", before: "| B1 C1", first: "granted, waiting -1", after: "A1 ttl | B1 C1"},
	{name: "vote briefly: another's ballot", do: voteBriefly, listening: "B", before: "B1 1h | C1", first: "by B1", after: "="},
	{name: "vote briefly: a foreign client", do: voteBriefly, before: "other! 1h", first: "by other!", after: "="},
	{name: "withdraw the own ballot", do: withdraw, before: "A1 ttl", first: "freed", second: "nothing"},
	{name: "withdraw: hint to the first waiter that listens, which stays first", do: withdraw, listening: "C", before: "A1 ttl | B1 junk! C1 B2", first: "handed", second: "nothing", after: "| C1 B2", hints: "C1 C1"},
	{name: "withdraw: waiters that do not listen leave the queue", do: withdraw, before: "A1 ttl | B1 C1", first: "freed", second: "nothing"},
	{name: "withdraw, and the waiter leaves", do: withdrawAll, listening: "A B", before: "A1 ttl | A2 B1", first: "handed", second: "nothing", after: "| B1", hints: "B1 B1"},
	{name: "withdraw without a hint", do: withdrawQuietly, listening: "B", before: "A1 ttl | B1", first: "handed", second: "nothing", after: "| B1"},
	{name: "withdraw another's ballot", do: withdrawAll, listening: "B C", before: "B1 ttl | A1 A2 C1", first: "nothing", after: "B1 ttl | C1"},
	{name: "withdraw without a ballot: a waiter that leaves passes a hint on", do: withdraw, listening: "B", before: "| A1 B1", first: "nothing", after: "| B1", hints: "B1 B1"},
	{name: "withdraw and rejoin behind another waiter", do: withdrawAndRejoin, listening: "B", before: "A1 ttl | B1", first: "handed", second: "nothing", after: "| B1 A2", hints: "B1 B1"},
	{name: "withdraw and rejoin alone: no queue", do: withdrawAndRejoin, before: "A1 ttl", first: "freed", second: "nothing"},
	{name: "withdraw another's ballot: does not rejoin", do: withdrawAndRejoin, before: "B1 ttl | C1", first: "nothing", after: "="},
})

func voteRequest(r storetest.AnyRequest) VoteRequest {
	return VoteRequest{Target: r.Target(), Claim: r.Claim, Join: r.Join, Waiter: r.Waiter, Brief: !r.WithHolder}
}

func withdrawRequest(r storetest.AnyRequest, wake, noWaiters bool) WithdrawRequest {
	return WithdrawRequest{Target: r.Target(), Claim: r.Claim, Waiter: r.Waiter, Rejoin: r.Rejoin, Wake: wake, NoWaiters: noWaiters}
}

// The marker of shared leases is a foreign holder for a quorum.
func TestBriefVoteKeepsTheMarkerAsHolder(t *testing.T) {
	t.Parallel()
	const marker = "shared 0 - 0"
	r := operationFor(storetest.Request(storetest.Me1))
	if got, err := decodeBriefVote(pipeline.Reply{Value: marker}, r); err != nil || got.Holder != marker || got.Shared {
		t.Errorf("%+v, %v", got, err)
	}
}
