package redisstore

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// vote asks for a vote under the ballot me1, for the waiter me2 who may join.
func vote(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := storetest.Request(storetest.Me1)
	r.Waiter = storetest.Me2
	return voteBy(t, s, r)
}

// voteOnce asks for one, for a caller who does not wait.
func voteOnce(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := storetest.Request(storetest.Me1)
	r.Join = false
	return voteBy(t, s, r)
}

func voteBy(t *testing.T, s *syncStore, r storetest.AnyRequest) outcome {
	t.Helper()
	asked := time.Now()
	got, err := storetest.Await(func(done func(store.Answer, error)) { s.Vote(voteRequest(r), done) })
	return answered(t, asked, got, err)
}

// withdraw takes the ballot me1 back, and wakes somebody.
func withdraw(t *testing.T, s *syncStore) outcome {
	t.Helper()
	return withdrawBy(t, s, storetest.Request(storetest.Me1), true)
}

// withdrawAll takes the waiter me2 out of the line, too.
func withdrawAll(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := storetest.Request(storetest.Me1)
	r.Waiter = storetest.Me2
	return withdrawBy(t, s, r, true)
}

// withdrawQuietly wakes nobody.
func withdrawQuietly(t *testing.T, s *syncStore) outcome {
	t.Helper()
	return withdrawBy(t, s, storetest.Request(storetest.Me1), false)
}

// withdrawAndRejoin joins the line as me2.
func withdrawAndRejoin(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := storetest.Request(storetest.Me1)
	r.Rejoin = storetest.Me2
	return withdrawBy(t, s, r, true)
}

func withdrawBy(t *testing.T, s *syncStore, r storetest.AnyRequest, wake bool) outcome {
	t.Helper()
	got, err := storetest.Await(func(done func(store.ReleaseResult, error)) { s.Withdraw(withdrawRequest(r, wake), done) })
	if err != nil {
		t.Fatal(err)
	}
	return outcome{end: got.Status}
}

// votes are the transitions of one server of a quorum.
var votes = []transitionTest{
	{
		name: "vote: free", do: vote,
		first: outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
	},
	{
		name: "vote: free for whoever asks, though others wait", do: vote, hears: []string{storetest.Bob},
		before: storetest.State{Queue: []string{storetest.Bob1, storetest.Me2, storetest.Eve1}},
		first:  outcome{granted: true, line: 2}, second: outcome{granted: true, line: 2},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, storetest.Me2, storetest.Eve1}},
	},
	{
		name: "vote: ours, and its life is raised", do: voteOnce,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1}},
		first:  outcome{granted: true, line: 1}, second: outcome{granted: true, line: 1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
	},
	{
		name: "vote: ours, and never shorter", do: voteOnce,
		before: storetest.State{Value: storetest.Me1, TTL: time.Hour},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: time.Hour},
	},
	{
		name: "vote: another's, who is told, and the waiter joins", do: vote, hears: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Eve1}},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour}, second: outcome{holder: storetest.Bob1, remaining: time.Hour},
		after: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Eve1, storetest.Me2}},
		said:  []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "vote: another's, and who does not wait changes nothing", do: voteOnce, hears: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour}, second: outcome{holder: storetest.Bob1, remaining: time.Hour},
		after: storetest.State{Value: storetest.Bob1, TTL: time.Hour},
	},
	{
		name: "vote: a foreign client's, which tells nobody", do: vote,
		before: storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Eve1}},
		first:  outcome{holder: "other", remaining: time.Hour, silent: true},
		second: outcome{holder: "other", remaining: time.Hour, silent: true},
		after:  storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Eve1, storetest.Me2}},
	},
	{
		name: "withdraw ours", do: withdraw,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
		first:  outcome{end: store.Freed}, second: outcome{end: store.NotHeld},
	},
	{
		name: "withdraw ours: the first that listens is told, and stays the first", do: withdraw, hears: []string{storetest.Eve},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, "junk", storetest.Eve1, storetest.Bob2}},
		first:  outcome{end: store.Handed}, second: outcome{end: store.NotHeld},
		after: storetest.State{Queue: []string{storetest.Eve1, storetest.Bob2}},
		said:  []string{storetest.Eve1 + " p:k", storetest.Eve1 + " p:k"},
	},
	{
		name: "withdraw ours: the dead are forgotten", do: withdraw,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, storetest.Eve1}},
		first:  outcome{end: store.Freed}, second: outcome{end: store.NotHeld},
	},
	{
		name: "withdraw ours, with the waiter", do: withdrawAll, hears: []string{storetest.Me, storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Me2, storetest.Bob1}},
		first:  outcome{end: store.Handed}, second: outcome{end: store.NotHeld},
		after: storetest.State{Queue: []string{storetest.Bob1}},
		said:  []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "withdraw ours quietly", do: withdrawQuietly, hears: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
		first:  outcome{end: store.Handed}, second: outcome{end: store.NotHeld},
		after: storetest.State{Queue: []string{storetest.Bob1}},
	},
	{
		name: "withdraw another's", do: withdrawAll, hears: []string{storetest.Bob, storetest.Eve},
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Me1, storetest.Me2, storetest.Eve1}},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1}},
	},
	{
		name: "withdraw none: a waiter that leaves passes a hint on", do: withdraw, hears: []string{storetest.Bob},
		before: storetest.State{Queue: []string{storetest.Me1, storetest.Bob1}},
		after:  storetest.State{Queue: []string{storetest.Bob1}},
		said:   []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "withdraw and rejoin behind another", do: withdrawAndRejoin, hears: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
		first:  outcome{end: store.Handed}, second: outcome{end: store.NotHeld},
		after: storetest.State{Queue: []string{storetest.Bob1, storetest.Me2}},
		said:  []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "withdraw and rejoin alone: there is no line", do: withdrawAndRejoin,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
		first:  outcome{end: store.Freed}, second: outcome{end: store.NotHeld},
	},
	{
		name: "withdraw another's: nobody rejoins", do: withdrawAndRejoin,
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
