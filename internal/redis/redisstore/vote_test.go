package redisstore

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// vote asks for a vote under the ballot me1, for the waiter me2 who may join.
func vote(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := request(me1)
	r.Waiter = me2
	return voteBy(t, s, r)
}

// voteOnce asks for one, for a caller who does not wait.
func voteOnce(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := request(me1)
	r.Join = false
	return voteBy(t, s, r)
}

func voteBy(t *testing.T, s *syncStore, r store.Request) outcome {
	t.Helper()
	asked := time.Now()
	got, err := await(func(done func(store.Answer, error)) { s.Vote(r, done) })
	return answered(t, asked, got, err)
}

// withdraw takes the ballot me1 back, and wakes somebody.
func withdraw(t *testing.T, s *syncStore) outcome {
	t.Helper()
	return withdrawBy(t, s, request(me1), true)
}

// withdrawAll takes the waiter me2 out of the line, too.
func withdrawAll(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := request(me1)
	r.Waiter = me2
	return withdrawBy(t, s, r, true)
}

// withdrawQuietly wakes nobody.
func withdrawQuietly(t *testing.T, s *syncStore) outcome {
	t.Helper()
	return withdrawBy(t, s, request(me1), false)
}

// withdrawAndRejoin joins the line as me2.
func withdrawAndRejoin(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := request(me1)
	r.Rejoin = me2
	return withdrawBy(t, s, r, true)
}

func withdrawBy(t *testing.T, s *syncStore, r store.Request, wake bool) outcome {
	t.Helper()
	got, err := await(func(done func(store.Released, error)) { s.Withdraw(r, wake, done) })
	if err != nil {
		t.Fatal(err)
	}
	return outcome{end: got.End}
}

// votes are the transitions of one server of a quorum.
var votes = []transitionTest{
	{
		name: "vote: free", do: vote,
		first: outcome{granted: true}, second: outcome{granted: true},
		after: state{value: me1, ttl: ttl},
	},
	{
		name: "vote: free for whoever asks, though others wait", do: vote, hears: []string{bob},
		before: state{line: []string{bob1, me2, eve1}},
		first:  outcome{granted: true, line: 2}, second: outcome{granted: true, line: 2},
		after: state{value: me1, ttl: ttl, line: []string{bob1, me2, eve1}},
	},
	{
		name: "vote: ours, and its life is raised", do: voteOnce,
		before: state{value: me1, ttl: claim, line: []string{bob1}},
		first:  outcome{granted: true, line: 1}, second: outcome{granted: true, line: 1},
		after: state{value: me1, ttl: ttl, line: []string{bob1}},
	},
	{
		name: "vote: ours, and never shorter", do: voteOnce,
		before: state{value: me1, ttl: time.Hour},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: state{value: me1, ttl: time.Hour},
	},
	{
		name: "vote: another's, who is told, and the waiter joins", do: vote, hears: []string{bob},
		before: state{value: bob1, ttl: time.Hour, line: []string{eve1}},
		first:  outcome{holder: bob1, remaining: time.Hour}, second: outcome{holder: bob1, remaining: time.Hour},
		after: state{value: bob1, ttl: time.Hour, line: []string{eve1, me2}},
		said:  []string{bob1 + " p:k", bob1 + " p:k"},
	},
	{
		name: "vote: another's, and who does not wait changes nothing", do: voteOnce, hears: []string{bob},
		before: state{value: bob1, ttl: time.Hour},
		first:  outcome{holder: bob1, remaining: time.Hour}, second: outcome{holder: bob1, remaining: time.Hour},
		after: state{value: bob1, ttl: time.Hour},
	},
	{
		name: "vote: a foreign client's, which tells nobody", do: vote,
		before: state{value: "other", ttl: time.Hour, line: []string{eve1}},
		first:  outcome{holder: "other", remaining: time.Hour, silent: true},
		second: outcome{holder: "other", remaining: time.Hour, silent: true},
		after:  state{value: "other", ttl: time.Hour, line: []string{eve1, me2}},
	},
	{
		name: "withdraw ours", do: withdraw,
		before: state{value: me1, ttl: ttl},
		first:  outcome{end: store.Freed}, second: outcome{end: store.NotHeld},
	},
	{
		name: "withdraw ours: the first that listens is told, and stays the first", do: withdraw, hears: []string{eve},
		before: state{value: me1, ttl: ttl, line: []string{bob1, "junk", eve1, bob2}},
		first:  outcome{end: store.Handed}, second: outcome{end: store.NotHeld},
		after: state{line: []string{eve1, bob2}},
		said:  []string{eve1 + " p:k", eve1 + " p:k"},
	},
	{
		name: "withdraw ours: the dead are forgotten", do: withdraw,
		before: state{value: me1, ttl: ttl, line: []string{bob1, eve1}},
		first:  outcome{end: store.Freed}, second: outcome{end: store.NotHeld},
	},
	{
		name: "withdraw ours, with the waiter", do: withdrawAll, hears: []string{me, bob},
		before: state{value: me1, ttl: ttl, line: []string{me2, bob1}},
		first:  outcome{end: store.Handed}, second: outcome{end: store.NotHeld},
		after: state{line: []string{bob1}},
		said:  []string{bob1 + " p:k", bob1 + " p:k"},
	},
	{
		name: "withdraw ours quietly", do: withdrawQuietly, hears: []string{bob},
		before: state{value: me1, ttl: ttl, line: []string{bob1}},
		first:  outcome{end: store.Handed}, second: outcome{end: store.NotHeld},
		after: state{line: []string{bob1}},
	},
	{
		name: "withdraw another's", do: withdrawAll, hears: []string{bob, eve},
		before: state{value: bob1, ttl: ttl, line: []string{me1, me2, eve1}},
		after:  state{value: bob1, ttl: ttl, line: []string{eve1}},
	},
	{
		name: "withdraw none: a waiter that leaves passes a hint on", do: withdraw, hears: []string{bob},
		before: state{line: []string{me1, bob1}},
		after:  state{line: []string{bob1}},
		said:   []string{bob1 + " p:k", bob1 + " p:k"},
	},
	{
		name: "withdraw and rejoin behind another", do: withdrawAndRejoin, hears: []string{bob},
		before: state{value: me1, ttl: ttl, line: []string{bob1}},
		first:  outcome{end: store.Handed}, second: outcome{end: store.NotHeld},
		after: state{line: []string{bob1, me2}},
		said:  []string{bob1 + " p:k", bob1 + " p:k"},
	},
	{
		name: "withdraw and rejoin alone: there is no line", do: withdrawAndRejoin,
		before: state{value: me1, ttl: ttl},
		first:  outcome{end: store.Freed}, second: outcome{end: store.NotHeld},
	},
	{
		name: "withdraw another's: nobody rejoins", do: withdrawAndRejoin,
		before: state{value: bob1, ttl: ttl, line: []string{eve1}},
		after:  state{value: bob1, ttl: ttl, line: []string{eve1}},
	},
}
