package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// outcome is what any of the transitions answers.
type outcome struct {
	granted   bool // or held
	line      int
	holder    string
	remaining time.Duration
	silent    bool
	end       store.ReleaseStatus

	// Of an attempt.
	verdict store.Verdict
	record  string
	number  int
	running bool
	stored  store.RecordStatus
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
		granted: got.Granted, line: got.Waiting, holder: got.Holder, remaining: got.Remaining, silent: got.ForeignHolder,
		verdict: got.Verdict, record: string(got.Record), number: got.Number, running: got.Running,
	}
}

func take(t *testing.T, s *syncStore) outcome {
	t.Helper()
	asked := time.Now()
	got, err := s.Take(t.Context(), storetest.Request(storetest.Me1))
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
	got, err := s.Enqueue(t.Context(), storetest.Request(storetest.Me1))
	return answered(t, asked, got, err)
}

func try(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := storetest.Request(storetest.Me1)
	r.Join = false
	asked := time.Now()
	got, err := s.Enqueue(t.Context(), r)
	return answered(t, asked, got, err)
}

func renew(t *testing.T, s *syncStore) outcome {
	t.Helper()
	asked := time.Now()
	got, err := s.Renew(t.Context(), storetest.Request(storetest.Me1))
	if err != nil {
		t.Fatal(err)
	}
	checkSince(t, got.Since, asked)
	return outcome{granted: got.Held, line: got.Waiting}
}

func release(t *testing.T, s *syncStore) outcome {
	t.Helper()
	got, err := s.Release(t.Context(), storetest.Request(storetest.Me1))
	if err != nil {
		t.Fatal(err)
	}
	return outcome{end: got.Status}
}

func rejoin(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := storetest.Request(storetest.Me1)
	r.Rejoin = storetest.Me2
	asked := time.Now()
	got, err := s.Release(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got.Status == store.Kept {
		checkSince(t, got.Since, asked)
	}
	return outcome{end: got.Status}
}

// inCluster runs a transition in mode B.
func inCluster(do transition) transition {
	return func(t *testing.T, s *syncStore) outcome {
		t.Helper()
		s.setMode("B")
		return do(t, s)
	}
}

// A transitionTest makes its call twice.
type transitionTest struct {
	name          string
	do            transition
	hears         []string // the processes that listen
	before        storetest.State
	first, second outcome
	after         storetest.State
	said          []string
}

var transitions = []transitionTest{
	{
		name: "take a free key", do: take,
		first: outcome{granted: true, line: -1}, second: outcome{granted: true, line: -1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
	},
	{
		name: "take our own key: its life is not raised", do: take,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim},
		first:  outcome{granted: true, line: -1}, second: outcome{granted: true, line: -1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.Claim},
	},
	{
		name: "take another's key", do: take,
		before: storetest.State{Value: "other", TTL: time.Hour},
		first:  outcome{holder: "other"}, second: outcome{holder: "other"},
		after: storetest.State{Value: "other", TTL: time.Hour},
	},
	{
		name: "take past a line", do: take, hears: []string{storetest.Bob},
		before: storetest.State{Queue: []string{storetest.Bob1}},
		first:  outcome{granted: true, line: -1}, second: outcome{granted: true, line: -1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
	},
	{
		name: "take, old server, a free key", do: takeOld,
		first: outcome{granted: true, line: -1}, second: outcome{granted: true, line: -1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
	},
	{
		name: "take, old server, our own key", do: takeOld,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim},
		first:  outcome{granted: true, line: -1}, second: outcome{granted: true, line: -1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.Claim},
	},
	{
		name: "take, old server, another's key", do: takeOld,
		before: storetest.State{Value: "other", TTL: time.Hour},
		first:  outcome{holder: "other"}, second: outcome{holder: "other"},
		after: storetest.State{Value: "other", TTL: time.Hour},
	},

	{
		name: "enqueue for a free key", do: enqueue,
		first: outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
	},
	{
		name: "confirm a grant: a full life", do: enqueue, hears: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1}},
		first:  outcome{granted: true, line: 1}, second: outcome{granted: true, line: 1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
	},
	{
		name: "confirm a grant: never a shorter life", do: enqueue,
		before: storetest.State{Value: storetest.Me1, TTL: time.Hour},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: time.Hour},
	},
	{
		name: "confirm a late take: out of the line", do: enqueue,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1, storetest.Me1, storetest.Eve1}},
		first:  outcome{granted: true, line: 2}, second: outcome{granted: true, line: 2},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, storetest.Eve1}},
	},
	{
		name: "enqueue behind a foreign client", do: enqueue,
		before: storetest.State{Value: "other", TTL: time.Hour},
		first:  outcome{holder: "other", remaining: time.Hour, silent: true},
		second: outcome{holder: "other", remaining: time.Hour, silent: true},
		after:  storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Me1}},
	},
	{
		name: "enqueue behind a foreign client that nearly has our form", do: enqueue, hears: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Bob + "b:1", TTL: time.Hour},
		first:  outcome{holder: storetest.Bob + "b:1", remaining: time.Hour, silent: true},
		second: outcome{holder: storetest.Bob + "b:1", remaining: time.Hour, silent: true},
		after:  storetest.State{Value: storetest.Bob + "b:1", TTL: time.Hour, Queue: []string{storetest.Me1}},
	},
	{
		name: "enqueue behind a key without an end", do: enqueue,
		before: storetest.State{Value: "other"},
		first:  outcome{holder: "other", remaining: -1, silent: true},
		second: outcome{holder: "other", remaining: -1, silent: true},
		after:  storetest.State{Value: "other", Queue: []string{storetest.Me1}},
	},
	{
		name: "enqueue behind one of us: the first of the line tells it", do: enqueue, hears: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour}, second: outcome{holder: storetest.Bob1, remaining: time.Hour},
		after: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Me1}},
		said:  []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "enqueue behind one of us that does not listen", do: enqueue,
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour}, second: outcome{holder: storetest.Bob1, remaining: time.Hour},
		after: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Me1}},
	},
	{
		name: "enqueue as the second in line: tells nobody", do: enqueue, hears: []string{storetest.Bob, storetest.Eve},
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Eve1}},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour}, second: outcome{holder: storetest.Bob1, remaining: time.Hour},
		after: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Eve1, storetest.Me1}},
	},
	{
		name: "enqueue as the second in line behind a foreign client: the first one polls", do: enqueue,
		before: storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Eve1}},
		first:  outcome{holder: "other", remaining: time.Hour}, second: outcome{holder: "other", remaining: time.Hour},
		after: storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Eve1, storetest.Me1}},
	},
	{
		name: "enqueue behind another token of our own: not adopted", do: enqueue, hears: []string{storetest.Me},
		before: storetest.State{Value: storetest.Me2, TTL: time.Hour},
		first:  outcome{holder: storetest.Me2, remaining: time.Hour}, second: outcome{holder: storetest.Me2, remaining: time.Hour},
		after: storetest.State{Value: storetest.Me2, TTL: time.Hour, Queue: []string{storetest.Me1}},
		said:  []string{storetest.Me2 + " p:k", storetest.Me2 + " p:k"},
	},
	{
		name: "enqueue for a free key behind a living line: the line goes first", do: enqueue, hears: []string{storetest.Bob},
		before: storetest.State{Queue: []string{storetest.Bob1}},
		first:  outcome{holder: storetest.Bob1, remaining: storetest.Claim}, second: outcome{holder: storetest.Bob1, remaining: storetest.Claim},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Me1}},
		said:  []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "enqueue for a free key behind a living line: our place is kept", do: enqueue, hears: []string{storetest.Bob},
		before: storetest.State{Queue: []string{storetest.Bob1, storetest.Me1, storetest.Eve1}},
		first:  outcome{holder: storetest.Bob1, remaining: storetest.Claim}, second: outcome{holder: storetest.Bob1, remaining: storetest.Claim},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Me1, storetest.Eve1}},
		said:  []string{storetest.Bob1 + " p:k", storetest.Bob1 + " p:k"},
	},
	{
		name: "enqueue for a free key behind the dead", do: enqueue, hears: []string{storetest.Eve},
		before: storetest.State{Queue: []string{storetest.Bob1, "junk", storetest.Bob2, storetest.Me1, storetest.Eve1}},
		first:  outcome{granted: true, line: 1}, second: outcome{granted: true, line: 1},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Eve1}},
	},
	{
		name: "enqueue for a free key behind the dead alone", do: enqueue,
		before: storetest.State{Queue: []string{storetest.Bob1, storetest.Bob2}},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
	},
	{
		name: "enqueue in a cluster: who cannot be counted goes first", do: inCluster(enqueue),
		before: storetest.State{Queue: []string{storetest.Bob1}},
		first:  outcome{holder: storetest.Bob1, remaining: storetest.Claim}, second: outcome{holder: storetest.Bob1, remaining: storetest.Claim},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Me1}},
	},
	{
		name: "the line's life is raised", do: enqueue,
		before: storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Me1}, QueueTTL: 20 * time.Second},
		first:  outcome{holder: "other", remaining: time.Hour, silent: true},
		second: outcome{holder: "other", remaining: time.Hour, silent: true},
		after:  storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Me1}},
	},
	{
		name: "the line's life is never shortened", do: enqueue,
		before: storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Eve1}, QueueTTL: time.Hour},
		first:  outcome{holder: "other", remaining: time.Hour}, second: outcome{holder: "other", remaining: time.Hour},
		after: storetest.State{Value: "other", TTL: time.Hour, Queue: []string{storetest.Eve1, storetest.Me1}, QueueTTL: time.Hour},
	},

	{
		name: "try a free key", do: try,
		first: outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
	},
	{
		name: "try a held key: never joins", do: try, hears: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Bob1, TTL: time.Hour},
		first:  outcome{holder: storetest.Bob1, remaining: time.Hour}, second: outcome{holder: storetest.Bob1, remaining: time.Hour},
		after: storetest.State{Value: storetest.Bob1, TTL: time.Hour},
	},
	{
		name: "try a free key with a living line: the first of it goes first", do: try, hears: []string{storetest.Bob},
		before: storetest.State{Queue: []string{storetest.Bob1, storetest.Eve1}},
		first:  outcome{holder: storetest.Bob1, remaining: storetest.Claim}, second: outcome{holder: storetest.Bob1, remaining: storetest.Claim},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Eve1}},
		said:  []string{storetest.Bob1 + " p:k"},
	},
	{
		name: "try a free key with a dead line", do: try,
		before: storetest.State{Queue: []string{storetest.Bob1, storetest.Eve1}},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
	},

	{
		name: "renew our key", do: renew,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1, storetest.Eve1}},
		first:  outcome{granted: true, line: 2}, second: outcome{granted: true, line: 2},
		after: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, storetest.Eve1}},
	},
	{
		name: "renew our key: never shorter", do: renew,
		before: storetest.State{Value: storetest.Me1, TTL: time.Hour},
		first:  outcome{granted: true}, second: outcome{granted: true},
		after: storetest.State{Value: storetest.Me1, TTL: time.Hour},
	},
	{
		name: "renew another's key", do: renew,
		before: storetest.State{Value: storetest.Me2, TTL: time.Hour},
		after:  storetest.State{Value: storetest.Me2, TTL: time.Hour},
	},
	{name: "renew no key: not created", do: renew},

	{
		name: "release our key", do: release,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
		first:  outcome{end: store.Freed}, second: outcome{end: store.NotHeld},
	},
	{
		name: "release another's key", do: release,
		before: storetest.State{Value: storetest.Me2, TTL: storetest.TTL},
		after:  storetest.State{Value: storetest.Me2, TTL: storetest.TTL},
	},
	{name: "release no key", do: release},
	{
		name: "release to the first that listens", do: release, hears: []string{storetest.Eve},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, "junk", storetest.Eve1, storetest.Bob2}},
		first:  outcome{end: store.Handed}, second: outcome{end: store.NotHeld},
		after: storetest.State{Value: storetest.Eve1, TTL: storetest.Claim, Queue: []string{storetest.Bob2}},
		said:  []string{storetest.Eve1 + " p:k"},
	},
	{
		name: "release to the dead alone", do: release,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, storetest.Eve1}},
		first:  outcome{end: store.Freed}, second: outcome{end: store.NotHeld},
	},
	{
		name: "release in a cluster: to who cannot be counted", do: inCluster(release),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, storetest.Eve1}},
		first:  outcome{end: store.Handed}, second: outcome{end: store.NotHeld},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Eve1}},
	},
	{
		name: "leave the line", do: release, hears: []string{storetest.Bob, storetest.Eve},
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1, storetest.Me1, storetest.Bob2}},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1, storetest.Bob2}},
	},
	{
		name: "leave as a grant comes: it is passed on", do: release, hears: []string{storetest.Eve},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Eve1}},
		first:  outcome{end: store.Handed}, second: outcome{end: store.NotHeld},
		after: storetest.State{Value: storetest.Eve1, TTL: storetest.Claim},
		said:  []string{storetest.Eve1 + " p:k"},
	},
	{
		name: "release after a late take: out of the line too", do: release, hears: []string{storetest.Me},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Me1}},
		first:  outcome{end: store.Freed}, second: outcome{end: store.NotHeld},
	},
	{
		name: "rejoin behind another", do: rejoin, hears: []string{storetest.Bob},
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, storetest.Eve1}},
		first:  outcome{end: store.Handed}, second: outcome{end: store.NotHeld},
		after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Eve1, storetest.Me2}},
		said:  []string{storetest.Bob1 + " p:k"},
	},
	{
		name: "rejoin alone: kept", do: rejoin,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim},
		first:  outcome{end: store.Kept}, second: outcome{end: store.NotHeld},
		after: storetest.State{Value: storetest.Me2, TTL: storetest.TTL},
	},
	{
		name: "rejoin behind the dead: kept", do: rejoin,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1, storetest.Eve1}},
		first:  outcome{end: store.Kept}, second: outcome{end: store.NotHeld},
		after: storetest.State{Value: storetest.Me2, TTL: storetest.TTL},
	},
	{
		name: "rejoin without the key: nobody rejoins", do: rejoin,
		before: storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Me1, storetest.Eve1}},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Eve1}},
	},
}

//faults:row 9, 11: releases of others' keys, and renewals, which create none
//faults:row 46: commits of one that was overtaken
func TestTransitions(t *testing.T) {
	t.Parallel()
	storetest.OnEachServer(t, func(t *testing.T, rdb redis.UniversalClient) {
		checkTransitions(t, rdb, newStore(t, rdb).subscriber.Mode().(string))
	})
}

// The scripts say the same where only the channels are those of a cluster.
func TestTransitionsWithShardedChannels(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Grant(storetest.ClusterRights()...)
	checkTransitions(t, server.Client(t), "S")
}

// checkTransitions makes all transitions, in a mode of queue.lua.
func checkTransitions(t *testing.T, rdb redis.UniversalClient, mode string) {
	t.Helper()
	tests := slices.Concat(transitions, ofAttempts, ofDamagedRecords(), votes)
	for i := range 2 * len(tests) {
		test, alone := tests[i/2], i%2 == 1
		t.Run(fmt.Sprintf("%s, alone %v", test.name, alone), func(t *testing.T) {
			s := newStore(t, rdb)
			s.alone = alone
			s.setMode(mode)
			test.check(t, rdb, s)
		})
	}
}

// check makes both calls of the store, and fails the test where they do not do what is
// said of them.
func (test *transitionTest) check(t *testing.T, rdb redis.UniversalClient, s *syncStore) {
	t.Helper()
	test.before.Put(t, rdb)
	audit := listenInMode(t, rdb, s.subscriber.Mode().(string), test.hears...)
	for i, want := range []outcome{test.first, test.second} {
		got := test.do(t, s)
		if storetest.IsTTL(got.remaining, want.remaining) && want.remaining != 0 {
			got.remaining = want.remaining
		}
		if got != want {
			t.Errorf("call %d: %+v, want %+v", i+1, got, want)
		}
	}
	test.after.Check(t, rdb)
	if said := audit.heard(t, rdb); !slices.Equal(said, test.said) {
		t.Errorf("said %q, want %q", said, test.said)
	}
	if rdb.Exists(t.Context(), storetest.FenceName).Val() != 0 {
		t.Error("fencing work was done, though none was asked for")
	}
}
