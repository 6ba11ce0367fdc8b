package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// outcome is what any of the transitions answers.
type outcome struct {
	granted   bool // or held
	line      int
	holder    string
	remaining time.Duration
	silent    bool
	end       store.End

	// Of an attempt.
	verdict store.Verdict
	record  string
	number  int
	running bool
	stored  store.Stored
}

// A transition is one call of the store, whose outcome it returns.
type transition func(*testing.T, *syncStore) outcome

// checkSince fails the test unless a lease counts from after it was asked for.
func checkSince(t *testing.T, since, asked time.Time) {
	t.Helper()
	if since.Before(asked) || time.Since(since) < 0 {
		t.Errorf("the lease counts from %v, asked for at %v", since, asked)
	}
}

func answered(t *testing.T, asked time.Time, got store.Answer, err error) outcome {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if got.Granted {
		checkSince(t, got.Since, asked)
	}
	if got.Fence != 0 {
		t.Errorf("fence %d, none was asked for", got.Fence)
	}
	return outcome{
		granted: got.Granted, line: got.Line, holder: got.Holder, remaining: got.Remaining, silent: got.Silent,
		verdict: got.Verdict, record: string(got.Record), number: got.Number, running: got.Running,
	}
}

func take(t *testing.T, s *syncStore) outcome {
	t.Helper()
	asked := time.Now()
	got, err := s.Take(t.Context(), request(me1))
	return answered(t, asked, got, err)
}

func takeOld(t *testing.T, s *syncStore) outcome {
	t.Helper()
	s.oldServer.Store(true)
	return take(t, s)
}

func enqueue(t *testing.T, s *syncStore) outcome {
	t.Helper()
	asked := time.Now()
	got, err := s.Enqueue(t.Context(), request(me1))
	return answered(t, asked, got, err)
}

func try(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := request(me1)
	r.Join = false
	asked := time.Now()
	got, err := s.Enqueue(t.Context(), r)
	return answered(t, asked, got, err)
}

func renew(t *testing.T, s *syncStore) outcome {
	t.Helper()
	asked := time.Now()
	got, err := s.Renew(t.Context(), request(me1))
	if err != nil {
		t.Fatal(err)
	}
	checkSince(t, got.Since, asked)
	return outcome{granted: got.Held, line: got.Line}
}

func release(t *testing.T, s *syncStore) outcome {
	t.Helper()
	got, err := s.Release(t.Context(), request(me1))
	if err != nil {
		t.Fatal(err)
	}
	return outcome{end: got.End}
}

func rejoin(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := request(me1)
	r.Rejoin = me2
	asked := time.Now()
	got, err := s.Release(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got.End == store.Kept {
		checkSince(t, got.Since, asked)
	}
	return outcome{end: got.End}
}

// inCluster runs a transition in mode B.
func inCluster(do transition) transition {
	return func(t *testing.T, s *syncStore) outcome {
		t.Helper()
		s.mode.Store("B")
		return do(t, s)
	}
}

// A transitionTest makes its call twice.
type transitionTest struct {
	name          string
	do            transition
	hears         []string // the processes that listen
	before        state
	first, second outcome
	after         state
	said          []string
}

var transitions = []transitionTest{
	{
		name: "take a free key", do: take,
		first: outcome{granted: true, line: -1}, second: outcome{granted: true, line: -1},
		after: state{value: me1, ttl: ttl},
	},
	{
		name: "take our own key: its life is not raised", do: take,
		before: state{value: me1, ttl: claim},
		first:  outcome{granted: true, line: -1}, second: outcome{granted: true, line: -1},
		after: state{value: me1, ttl: claim},
	},
	{
		name: "take another's key", do: take,
		before: state{value: "other", ttl: time.Hour},
		first:  outcome{holder: "other"}, second: outcome{holder: "other"},
		after: state{value: "other", ttl: time.Hour},
	},
	{
		name: "take past a line", do: take, hears: []string{bob},
		before: state{line: []string{bob1}},
		first:  outcome{granted: true, line: -1}, second: outcome{granted: true, line: -1},
		after: state{value: me1, ttl: ttl, line: []string{bob1}},
	},
	{
		name: "take, old server, a free key", do: takeOld,
		first: outcome{granted: true, line: -1}, second: outcome{granted: true, line: -1},
		after: state{value: me1, ttl: ttl},
	},
	{
		name: "take, old server, our own key", do: takeOld,
		before: state{value: me1, ttl: claim},
		first:  outcome{granted: true, line: -1}, second: outcome{granted: true, line: -1},
		after: state{value: me1, ttl: claim},
	},
	{
		name: "take, old server, another's key", do: takeOld,
		before: state{value: "other", ttl: time.Hour},
		first:  outcome{holder: "other"}, second: outcome{holder: "other"},
		after: state{value: "other", ttl: time.Hour},
	},

	{
		name: "enqueue for a free key", do: enqueue,
		first: outcome{granted: true}, second: outcome{granted: true},
		after: state{value: me1, ttl: ttl},
	},
	{
		name: "confirm a grant: a full life", do: enqueue, hears: []string{bob},
		before: state{value: me1, ttl: claim, line: []string{bob1}},
		first:  outcome{granted: true, line: 1}, second: outcome{granted: true, line: 1},
		after: state{value: me1, ttl: ttl, line: []string{bob1}},
	},
	{
		name: "confirm a grant: never a shorter life", do: enqueue,
		before: state{value: me1, ttl: time.Hour},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: state{value: me1, ttl: time.Hour},
	},
	{
		name: "confirm a late take: out of the line", do: enqueue,
		before: state{value: me1, ttl: claim, line: []string{bob1, me1, eve1}},
		first:  outcome{granted: true, line: 2}, second: outcome{granted: true, line: 2},
		after: state{value: me1, ttl: ttl, line: []string{bob1, eve1}},
	},
	{
		name: "enqueue behind a foreign client", do: enqueue,
		before: state{value: "other", ttl: time.Hour},
		first:  outcome{holder: "other", remaining: time.Hour, silent: true},
		second: outcome{holder: "other", remaining: time.Hour, silent: true},
		after:  state{value: "other", ttl: time.Hour, line: []string{me1}},
	},
	{
		name: "enqueue behind a foreign client that nearly has our form", do: enqueue, hears: []string{bob},
		before: state{value: bob + "b:1", ttl: time.Hour},
		first:  outcome{holder: bob + "b:1", remaining: time.Hour, silent: true},
		second: outcome{holder: bob + "b:1", remaining: time.Hour, silent: true},
		after:  state{value: bob + "b:1", ttl: time.Hour, line: []string{me1}},
	},
	{
		name: "enqueue behind a key without an end", do: enqueue,
		before: state{value: "other"},
		first:  outcome{holder: "other", remaining: -1, silent: true},
		second: outcome{holder: "other", remaining: -1, silent: true},
		after:  state{value: "other", line: []string{me1}},
	},
	{
		name: "enqueue behind one of us: the first of the line tells it", do: enqueue, hears: []string{bob},
		before: state{value: bob1, ttl: time.Hour},
		first:  outcome{holder: bob1, remaining: time.Hour}, second: outcome{holder: bob1, remaining: time.Hour},
		after: state{value: bob1, ttl: time.Hour, line: []string{me1}},
		said:  []string{bob1 + " p:k", bob1 + " p:k"},
	},
	{
		name: "enqueue behind one of us that does not listen", do: enqueue,
		before: state{value: bob1, ttl: time.Hour},
		first:  outcome{holder: bob1, remaining: time.Hour}, second: outcome{holder: bob1, remaining: time.Hour},
		after: state{value: bob1, ttl: time.Hour, line: []string{me1}},
	},
	{
		name: "enqueue as the second in line: tells nobody", do: enqueue, hears: []string{bob, eve},
		before: state{value: bob1, ttl: time.Hour, line: []string{eve1}},
		first:  outcome{holder: bob1, remaining: time.Hour}, second: outcome{holder: bob1, remaining: time.Hour},
		after: state{value: bob1, ttl: time.Hour, line: []string{eve1, me1}},
	},
	{
		name: "enqueue as the second in line behind a foreign client: the first one polls", do: enqueue,
		before: state{value: "other", ttl: time.Hour, line: []string{eve1}},
		first:  outcome{holder: "other", remaining: time.Hour}, second: outcome{holder: "other", remaining: time.Hour},
		after: state{value: "other", ttl: time.Hour, line: []string{eve1, me1}},
	},
	{
		name: "enqueue behind another token of our own: not adopted", do: enqueue, hears: []string{me},
		before: state{value: me2, ttl: time.Hour},
		first:  outcome{holder: me2, remaining: time.Hour}, second: outcome{holder: me2, remaining: time.Hour},
		after: state{value: me2, ttl: time.Hour, line: []string{me1}},
		said:  []string{me2 + " p:k", me2 + " p:k"},
	},
	{
		name: "enqueue for a free key behind a living line: the line goes first", do: enqueue, hears: []string{bob},
		before: state{line: []string{bob1}},
		first:  outcome{holder: bob1, remaining: claim}, second: outcome{holder: bob1, remaining: claim},
		after: state{value: bob1, ttl: claim, line: []string{me1}},
		said:  []string{bob1 + " p:k", bob1 + " p:k"},
	},
	{
		name: "enqueue for a free key behind a living line: our place is kept", do: enqueue, hears: []string{bob},
		before: state{line: []string{bob1, me1, eve1}},
		first:  outcome{holder: bob1, remaining: claim}, second: outcome{holder: bob1, remaining: claim},
		after: state{value: bob1, ttl: claim, line: []string{me1, eve1}},
		said:  []string{bob1 + " p:k", bob1 + " p:k"},
	},
	{
		name: "enqueue for a free key behind the dead", do: enqueue, hears: []string{eve},
		before: state{line: []string{bob1, "junk", bob2, me1, eve1}},
		first:  outcome{granted: true, line: 1}, second: outcome{granted: true, line: 1},
		after: state{value: me1, ttl: ttl, line: []string{eve1}},
	},
	{
		name: "enqueue for a free key behind the dead alone", do: enqueue,
		before: state{line: []string{bob1, bob2}},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: state{value: me1, ttl: ttl},
	},
	{
		name: "enqueue in a cluster: who cannot be counted goes first", do: inCluster(enqueue),
		before: state{line: []string{bob1}},
		first:  outcome{holder: bob1, remaining: claim}, second: outcome{holder: bob1, remaining: claim},
		after: state{value: bob1, ttl: claim, line: []string{me1}},
	},
	{
		name: "the line's life is raised", do: enqueue,
		before: state{value: "other", ttl: time.Hour, line: []string{me1}, lineTTL: 20 * time.Second},
		first:  outcome{holder: "other", remaining: time.Hour, silent: true},
		second: outcome{holder: "other", remaining: time.Hour, silent: true},
		after:  state{value: "other", ttl: time.Hour, line: []string{me1}},
	},
	{
		name: "the line's life is never shortened", do: enqueue,
		before: state{value: "other", ttl: time.Hour, line: []string{eve1}, lineTTL: time.Hour},
		first:  outcome{holder: "other", remaining: time.Hour}, second: outcome{holder: "other", remaining: time.Hour},
		after: state{value: "other", ttl: time.Hour, line: []string{eve1, me1}, lineTTL: time.Hour},
	},

	{
		name: "try a free key", do: try,
		first: outcome{granted: true}, second: outcome{granted: true},
		after: state{value: me1, ttl: ttl},
	},
	{
		name: "try a held key: never joins", do: try, hears: []string{bob},
		before: state{value: bob1, ttl: time.Hour},
		first:  outcome{holder: bob1, remaining: time.Hour}, second: outcome{holder: bob1, remaining: time.Hour},
		after: state{value: bob1, ttl: time.Hour},
	},
	{
		name: "try a free key with a living line: the first of it goes first", do: try, hears: []string{bob},
		before: state{line: []string{bob1, eve1}},
		first:  outcome{holder: bob1, remaining: claim}, second: outcome{holder: bob1, remaining: claim},
		after: state{value: bob1, ttl: claim, line: []string{eve1}},
		said:  []string{bob1 + " p:k"},
	},
	{
		name: "try a free key with a dead line", do: try,
		before: state{line: []string{bob1, eve1}},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: state{value: me1, ttl: ttl},
	},

	{
		name: "renew our key", do: renew,
		before: state{value: me1, ttl: claim, line: []string{bob1, eve1}},
		first:  outcome{granted: true, line: 2}, second: outcome{granted: true, line: 2},
		after: state{value: me1, ttl: ttl, line: []string{bob1, eve1}},
	},
	{
		name: "renew our key: never shorter", do: renew,
		before: state{value: me1, ttl: time.Hour},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: state{value: me1, ttl: time.Hour},
	},
	{
		name: "renew another's key", do: renew,
		before: state{value: me2, ttl: time.Hour},
		after:  state{value: me2, ttl: time.Hour},
	},
	{name: "renew no key: not created", do: renew},

	{
		name: "release our key", do: release,
		before: state{value: me1, ttl: ttl},
		first:  outcome{end: store.Freed}, second: outcome{end: store.NotHeld},
	},
	{
		name: "release another's key", do: release,
		before: state{value: me2, ttl: ttl},
		after:  state{value: me2, ttl: ttl},
	},
	{name: "release no key", do: release},
	{
		name: "release to the first that listens", do: release, hears: []string{eve},
		before: state{value: me1, ttl: ttl, line: []string{bob1, "junk", eve1, bob2}},
		first:  outcome{end: store.Handed}, second: outcome{end: store.NotHeld},
		after: state{value: eve1, ttl: claim, line: []string{bob2}},
		said:  []string{eve1 + " p:k"},
	},
	{
		name: "release to the dead alone", do: release,
		before: state{value: me1, ttl: ttl, line: []string{bob1, eve1}},
		first:  outcome{end: store.Freed}, second: outcome{end: store.NotHeld},
	},
	{
		name: "release in a cluster: to who cannot be counted", do: inCluster(release),
		before: state{value: me1, ttl: ttl, line: []string{bob1, eve1}},
		first:  outcome{end: store.Handed}, second: outcome{end: store.NotHeld},
		after: state{value: bob1, ttl: claim, line: []string{eve1}},
	},
	{
		name: "leave the line", do: release, hears: []string{bob, eve},
		before: state{value: bob1, ttl: ttl, line: []string{eve1, me1, bob2}},
		after:  state{value: bob1, ttl: ttl, line: []string{eve1, bob2}},
	},
	{
		name: "leave as a grant comes: it is passed on", do: release, hears: []string{eve},
		before: state{value: me1, ttl: claim, line: []string{eve1}},
		first:  outcome{end: store.Handed}, second: outcome{end: store.NotHeld},
		after: state{value: eve1, ttl: claim},
		said:  []string{eve1 + " p:k"},
	},
	{
		name: "release after a late take: out of the line too", do: release, hears: []string{me},
		before: state{value: me1, ttl: ttl, line: []string{me1}},
		first:  outcome{end: store.Freed}, second: outcome{end: store.NotHeld},
	},
	{
		name: "rejoin behind another", do: rejoin, hears: []string{bob},
		before: state{value: me1, ttl: ttl, line: []string{bob1, eve1}},
		first:  outcome{end: store.Handed}, second: outcome{end: store.NotHeld},
		after: state{value: bob1, ttl: claim, line: []string{eve1, me2}},
		said:  []string{bob1 + " p:k"},
	},
	{
		name: "rejoin alone: kept", do: rejoin,
		before: state{value: me1, ttl: claim},
		first:  outcome{end: store.Kept}, second: outcome{end: store.NotHeld},
		after: state{value: me2, ttl: ttl},
	},
	{
		name: "rejoin behind the dead: kept", do: rejoin,
		before: state{value: me1, ttl: claim, line: []string{bob1, eve1}},
		first:  outcome{end: store.Kept}, second: outcome{end: store.NotHeld},
		after: state{value: me2, ttl: ttl},
	},
	{
		name: "rejoin without the key: nobody rejoins", do: rejoin,
		before: state{value: bob1, ttl: ttl, line: []string{me1, eve1}},
		after:  state{value: bob1, ttl: ttl, line: []string{eve1}},
	},
}

//faults:row 9, 11: releases of others' keys, and renewals, which create none
//faults:row 46: commits of one that was overtaken
func TestTransitions(t *testing.T) {
	onEachServer(t, func(t *testing.T, rdb redis.UniversalClient) {
		checkTransitions(t, rdb, newStore(t, rdb).mode.Load().(string))
	})
}

// The scripts say the same where only the channels are those of a cluster.
func TestTransitionsWithShardedChannels(t *testing.T) {
	server := redistest.Start(t)
	server.Grant(clusterRights()...)
	checkTransitions(t, server.Client(t), "S")
}

// checkTransitions makes all transitions, in a mode of line.lua.
func checkTransitions(t *testing.T, rdb redis.UniversalClient, mode string) {
	t.Helper()
	tests := slices.Concat(transitions, ofAttempts, ofDamagedRecords(), votes)
	for i := range 2 * len(tests) {
		test, alone := tests[i/2], i%2 == 1
		t.Run(fmt.Sprintf("%s, alone %v", test.name, alone), func(t *testing.T) {
			s := newStore(t, rdb)
			s.alone = alone
			s.mode.Store(mode)
			test.check(t, rdb, s)
		})
	}
}

// check makes both calls of the store, and fails the test where they do not do what is
// said of them.
func (test *transitionTest) check(t *testing.T, rdb redis.UniversalClient, s *syncStore) {
	t.Helper()
	test.before.put(t, rdb)
	audit := listenInMode(t, rdb, s.mode.Load().(string), test.hears...)
	for i, want := range []outcome{test.first, test.second} {
		got := test.do(t, s)
		if isLife(got.remaining, want.remaining) && want.remaining != 0 {
			got.remaining = want.remaining
		}
		if got != want {
			t.Errorf("call %d: %+v, want %+v", i+1, got, want)
		}
	}
	test.after.check(t, rdb)
	if said := audit.heard(t, rdb); !slices.Equal(said, test.said) {
		t.Errorf("said %q, want %q", said, test.said)
	}
	if rdb.Exists(t.Context(), theFence).Val() != 0 {
		t.Error("fencing work was done, though none was asked for")
	}
}
