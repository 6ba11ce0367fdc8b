package redisstore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

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
	tests := slices.Concat(transitions, attemptTransitions, operatorTransitions(), damagedRecordTransitions(), voteTransitions)
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
		got := test.do(t, s)
		if storetest.IsTTL(got.remaining, want.remaining) && want.remaining != 0 {
			got.remaining = want.remaining
		}
		if got != want {
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
