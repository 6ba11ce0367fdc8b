package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

type (
	hash   = map[string]string
	leases = map[string]time.Duration
)

// outcome is the answer to a transition.
type outcome struct {
	granted   bool // or held
	waiting   int
	holder    string
	remaining time.Duration
	foreign   bool // the holder sends no hint
	shared    bool // shared leases are out
	status    store.ReleaseStatus

	// These are set only for an attempt.
	verdict store.Verdict
	record  string
	number  int
	running bool
	stored  store.RecordStatus
	// unreported is the name of the attempt that died, if that was not reported yet.
	unreported string
	first      string // the reference of another attempt

	// These are set only for what an operator does.
	resolved store.ResolveStatus
	read     store.Outcome
	revoked  int
}

// round makes the remaining time the one that is wanted, if a slow machine explains the difference.
func (o *outcome) round(want outcome) {
	if want.remaining != 0 && storetest.IsTTL(o.remaining, want.remaining) {
		o.remaining = want.remaining
	}
}

// A transition sends one request and returns its answer.
type transition func(*testing.T, *syncStore) (outcome, error)

// run runs the transition, and fails the test if that fails.
func (do transition) run(t *testing.T, s *syncStore) outcome {
	t.Helper()
	got, err := do(t, s)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A change changes a request, which is that of storetest.Request for Me1 before.
type change = func(*storetest.AnyRequest)

func changed(changes []change) storetest.AnyRequest {
	r := storetest.Request(storetest.Me1)
	for _, change := range changes {
		change(&r)
	}
	return r
}

func withoutJoin(r *storetest.AnyRequest) { r.Join = false }

func rejoins(r *storetest.AnyRequest) { r.Rejoin = storetest.Me2 }

// withoutHolder makes the request one that neither joins the queue nor wants the holder.
func withoutHolder(r *storetest.AnyRequest) { r.Join, r.WithHolder = false, false }

// permit makes the request one for one of two permits.
func permit(r *storetest.AnyRequest) { r.Token, r.Limit = storetest.MePermit1, 2 }

func numbers(n int) change {
	return func(r *storetest.AnyRequest) { r.Fences = n }
}

func limit(l store.Limit) change {
	return func(r *storetest.AnyRequest) { r.Limit = l }
}

// checkSince fails the test unless a lease counts from a time between the request and now.
func checkSince(t *testing.T, since, asked time.Time) {
	t.Helper()
	if since.Before(asked) || time.Since(since) < 0 {
		t.Errorf("the lease counts from %v, the request was sent at %v", since, asked)
	}
}

// outcomeOf returns the answer to a request, which was sent at this time, as an outcome.
func outcomeOf(t *testing.T, r *storetest.AnyRequest, asked time.Time, got store.Answer) outcome {
	t.Helper()
	if got.Granted {
		checkSince(t, got.Since, asked)
	}
	if (got.Fence != 0) != (got.Granted && r.Fences > 0) {
		t.Errorf("fence %d, and %d were wanted", got.Fence, r.Fences)
	}
	return outcome{
		granted: got.Granted, waiting: got.Waiting, holder: got.Holder, remaining: got.Remaining, foreign: got.ForeignHolder, shared: got.Shared,
		verdict: got.Verdict, record: string(got.Record), number: got.Number, running: got.Running, unreported: got.Unreported, first: got.First,
	}
}

func taking(changes ...change) transition {
	return func(t *testing.T, s *syncStore) (outcome, error) {
		t.Helper()
		r, asked := changed(changes), time.Now()
		got, err := s.Take(t.Context(), r)
		s.since = got.Since
		return outcomeOf(t, &r, asked, got), err
	}
}

func asking(changes ...change) transition {
	return func(t *testing.T, s *syncStore) (outcome, error) {
		t.Helper()
		r, asked := changed(changes), time.Now()
		got, err := s.Enqueue(t.Context(), r)
		s.since = got.Since
		return outcomeOf(t, &r, asked, got), err
	}
}

func renewing(changes ...change) transition {
	return func(t *testing.T, s *syncStore) (outcome, error) {
		t.Helper()
		r, asked := changed(changes), time.Now()
		got, err := s.Renew(t.Context(), r)
		s.since = got.Since
		if err == nil {
			checkSince(t, got.Since, asked)
		}
		return outcome{granted: got.Held, waiting: got.Waiting}, err
	}
}

func releasing(changes ...change) transition {
	return func(t *testing.T, s *syncStore) (outcome, error) {
		t.Helper()
		r, asked := changed(changes), time.Now()
		got, err := s.Release(t.Context(), r)
		s.since = got.Since
		if got.Status == store.Kept {
			checkSince(t, got.Since, asked)
		}
		return outcome{status: got.Status, stored: got.Record}, err
	}
}

var take, enqueue, nowait, renew, release, rejoin = taking(), asking(), asking(withoutJoin), renewing(), releasing(), releasing(rejoins)

// inModeB runs a transition in mode B of queue.lua, in which the subscribers of a channel
// cannot be counted.
func inModeB(do transition) transition {
	return func(t *testing.T, s *syncStore) (outcome, error) {
		t.Helper()
		s.setMode("B")
		return do(t, s)
	}
}

// A transitionTest runs its transition twice.
type transitionTest struct {
	name          string
	do            transition
	listening     []string // the processes that subscribe
	before        storetest.State
	first, second outcome
	after         storetest.State
	hints         []string
}

// checkTransitions runs all transitions in a mode of queue.lua.
func checkTransitions(t *testing.T, rdb redis.UniversalClient, mode string) {
	t.Helper()
	tests := slices.Concat(transitions, apartTransitions, freshTransitions, attemptTransitions, operatorTransitions(), damagedRecordTransitions(), revokeTransitions, ticketTransitions, voteTransitions)
	for i := range 2 * len(tests) { // with and without NoWaiters
		test, noWaiters := tests[i%len(tests)], (i+i/len(tests))%2 == 1
		t.Run(fmt.Sprintf("%s, NoWaiters %t", test.name, noWaiters), func(t *testing.T) {
			if mode == "S" && i >= len(tests) {
				suite.Full(t, "is the second run of the transition in this mode, and the other modes have both")
			}
			s := newStore(t, rdb)
			s.noWaiters = noWaiters
			s.setMode(mode)
			test.check(t, rdb, s)
		})
	}
}

// check runs the transition twice, and fails the test unless the outcomes, the state and the
// hints are those of the test.
func (test *transitionTest) check(t *testing.T, rdb redis.UniversalClient, s *syncStore) {
	t.Helper()
	test.before.Put(t, rdb)
	log := subscribeInMode(t, rdb, s.subscriber.Mode().(string), test.listening...)
	for i, want := range []outcome{test.first, test.second} {
		got := test.do.run(t, s)
		if got.round(want); got != want {
			t.Errorf("call %d: %+v, want %+v", i+1, got, want)
		}
	}
	test.after.Check(t, rdb)
	if hints := log.end(t, rdb); !slices.Equal(hints, test.hints) {
		t.Errorf("hints %q, want %q", hints, test.hints)
	}
	if rdb.Exists(t.Context(), storetest.FenceName).Val() != 0 {
		t.Error("fencing numbers were reserved, although none were wanted")
	}
}
