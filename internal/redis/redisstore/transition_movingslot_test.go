package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// While its slot moves, but all its keys are still there, a script does what it always does. The
// server lets it start, but stops it in the middle if it uses a key that it has just deleted.
func TestTransitionsWhileSlotMoves(t *testing.T) {
	t.Parallel()
	move := newSlotMove(t, redistest.StartCluster(t))
	rdb := move.rdb

	begins := func(test transitionTest) bool { return test.before.Record == nil }
	tests := slices.Concat(transitions, apartTransitions, slices.DeleteFunc(slices.Clone(attemptTransitions), begins), emptyingTransitions)
	tests = slices.DeleteFunc(tests, func(test transitionTest) bool {
		return test.before.Value == "" || len(test.before.Queue) == 0 // the reply would be TRYAGAIN
	})
	if len(tests) < 20 {
		t.Errorf("only %d transitions begin with all keys", len(tests))
	}
	for i := range 2 * len(tests) {
		test, mode := tests[i%len(tests)], []string{"P", "S"}[(i+i/len(tests))%2]
		t.Run(fmt.Sprintf("%s, mode %s", test.name, mode), func(t *testing.T) {
			if i >= len(tests) {
				suite.Full(t, "repeats the transition in the other mode")
			}
			s := newStore(t, rdb)
			s.setMode(mode)
			test.before.Put(t, rdb)
			log := subscribeInMode(t, rdb, mode, test.listening...)
			defer func() {
				for _, conn := range log.conns {
					_ = conn.Close()
				}
			}()
			defer move.begin()()
			got := test.do.run(t, s)
			if got.round(test.first); got != test.first {
				t.Errorf("%+v, want %+v", got, test.first)
			}
			test.after.Check(t, rdb)
			if hints := log.end(t, rdb); !slices.Equal(hints, test.hints) {
				t.Errorf("hints %q, want %q", hints, test.hints)
			}
		})
	}
}

// A script of shared leases, too, does not use a key that it has just deleted.
func TestSharedTransitionsWhileSlotMoves(t *testing.T) {
	t.Parallel()
	move := newSlotMove(t, redistest.StartCluster(t))
	tests := slices.Concat(sharedAsks, sharedReleases, sharedRenewals, exclusiveBesideShared)
	tests = slices.DeleteFunc(tests, func(test sharedTransition) bool {
		k, rest, _ := strings.Cut(string(test.before), "|")
		queue, set, _ := strings.Cut(rest, "|")
		hasAll := strings.TrimSpace(k) != "-" && strings.TrimSpace(queue) != "" && strings.TrimSpace(set) != "" && !strings.Contains(test.name, "attempt")
		return !hasAll // the reply would be TRYAGAIN
	})
	if len(tests) < 20 {
		t.Errorf("only %d transitions begin with all keys", len(tests))
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newStore(t, move.rdb)
			s.setMode("S")
			test.before.put(t, move.rdb)
			var processes []string
			for name := range strings.FieldsSeq(test.listening) {
				processes = append(processes, processOf(name))
			}
			log := subscribeInMode(t, move.rdb, "S", processes...)
			defer func() {
				for _, conn := range log.conns {
					_ = conn.Close()
				}
			}()
			defer move.begin()()
			if got := test.do(t, s); got != test.first {
				t.Errorf("%s, want %s", got, test.first)
			}
		})
	}
	t.Run("renew without a queue", func(t *testing.T) {
		s := newStore(t, move.rdb)
		sharedState("shared 9 | | A1*=9").put(t, move.rdb)
		defer move.begin()()
		if got, err := s.Renew(t.Context(), namedRequest("A1*")); err != nil || !got.Held || got.Waiting != store.WaitingUnknown {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A slotMove moves the slot of the lock k from its master to another one, and back.
type slotMove struct {
	rdb     *redis.Client // of the master that has the slot
	setSlot func(node *redistest.Server, order ...any)
	from    *redistest.Server
	to      *redistest.Server
	id      func(*redistest.Server) string
}

func newSlotMove(t *testing.T, cluster *redistest.Cluster) *slotMove {
	t.Helper()
	from, masters, slot := cluster.MasterOf(storetest.LockName), cluster.Masters(), cluster.Slot(storetest.LockName)
	return &slotMove{
		rdb: from.Client(t), from: from, to: masters[(slices.Index(masters, from)+1)%len(masters)],
		setSlot: func(node *redistest.Server, order ...any) {
			t.Helper()
			if err := node.Client(t).Do(t.Context(), append([]any{"CLUSTER", "SETSLOT", slot}, order...)...).Err(); err != nil {
				t.Fatal(err)
			}
		},
		id: func(node *redistest.Server) string { return node.Client(t).ClusterMyID(t.Context()).Val() },
	}
}

// begin begins the move, and returns a function that ends it.
func (m *slotMove) begin() (end func()) {
	m.setSlot(m.to, "IMPORTING", m.id(m.from))
	m.setSlot(m.from, "MIGRATING", m.id(m.to))
	return func() {
		m.setSlot(m.from, "STABLE")
		m.setSlot(m.to, "STABLE")
	}
}

// emptyingTransitions empty the queue, or replace a record.
var emptyingTransitions = testsOf([]transitionRow{
	{name: "confirm a late take: the queue is empty", do: enqueue, before: "A1 claim | A1", first: "granted", after: "A1 ttl"},
	{name: "confirm after a late send of a fresh one: the queue is empty", do: enqueue, before: "A1 claim | A1 A1", first: "granted", after: "A1 ttl"},
	{name: "release apart while the last waiter does not listen", do: releasing(apart), before: "A1 ttl | B1", first: "freed"},
	{name: "rejoin apart behind the last waiter", do: inModeB(releasing(rejoins, apart)), before: "A1 ttl | B1", first: "handed", after: "B1 claim | A2"},
	{name: "rejoin apart while the last waiter does not listen: kept", do: releasing(rejoins, apart), before: "A1 claim | B1", first: "kept", after: "A2 ttl"},
	{name: "rejoin behind the last waiter", do: inModeB(rejoin), before: "A1 ttl | B1", first: "handed", after: "B1 claim | A2"},
	{name: "rejoin while only the own token waits: kept", do: rejoin, before: "A1 claim | A1", first: "kept", after: "A2 ttl"},
	{name: "commit while only the own token waits", do: finish(store.EndCommit), before: "A1 ttl | A1 | R A1 1", first: "freed, stored", after: "| | D A1"},
	{name: "seal, and hand over to the last waiter", do: inModeB(finish(store.EndDone)), before: "A1 ttl | B1 | R A1 1", first: "handed, stored", after: "B1 claim | | U A1"},
	{name: "abort while only the own token waits", do: finish(store.EndAbort), before: "A1 ttl | A1 | R A1 1", first: "freed, stored", after: "| | A A1 @abort"},
	{name: "rerun while only the own token waits", do: begin(rerun), before: "A1 claim | A1 | R B1 1", first: "granted, number 2", after: "A1 ttl | | R A1 2"},
	{name: "begin a sealed request while only the own token waits: freed", do: begin(), before: "A1 claim | A1 | U B1", first: "sealed", after: "| | U B1"},
})

// The two halves of a renewal while the lock and its set are on different nodes: neither
// creates or shortens anything, and neither renews a lease that has ended.
// tests/resharding moves the keys.
func TestHalvesOfRenewalApart(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	source := newStore(t, rdb).scripts.SharedRenewApart.Source.(string)
	const held, lost = "[1 -1 0 0]", "[0]"
	for _, test := range []struct {
		name, key, value string        // value of the lock, or the token in the set
		before, after    time.Duration // TTL of the lock, or the rest of the lease; 0 if there is none
		want             string
	}{
		{"lock", "K", storetest.Marker, time.Minute, 2 * storetest.TTL, "-1"},
		{"lock that lives longer", "K", storetest.Marker, time.Hour, time.Hour, "-1"},
		{"lock of an exclusive lease", "K", storetest.Bob1, time.Minute, time.Minute, lost},
		{"lock of a foreign client", "K", "shared", time.Minute, time.Minute, lost},
		{"lock is gone", "K", "", 0, 0, lost},
		{"lease", "S", storetest.Me1, time.Minute, storetest.TTL, held},
		{"lease that lives longer", "S", storetest.Me1, time.Hour, time.Hour, held},
		{"lease that has ended", "S", storetest.Me1, -time.Minute, -time.Minute, lost},
		{"lease of another token", "S", storetest.Bob1, time.Minute, time.Minute, lost},
		{"set is gone", "S", "", 0, 0, lost},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, name := t.Context(), storetest.LockName
			rdb.Del(ctx, storetest.LockName, storetest.SharedName)
			switch {
			case test.key == "S":
				name = storetest.SharedName
				if test.value != "" {
					rdb.ZAdd(ctx, name, redis.Z{Member: test.value, Score: float64(time.Now().Add(test.before).UnixMilli())})
					rdb.Expire(ctx, name, time.Hour)
				}
			case test.value != "":
				rdb.Set(ctx, name, test.value, test.before)
			}
			got, err := rdb.Eval(ctx, source, []string{name}, storetest.Me1, storetest.TTL.Milliseconds(), test.key).Result()
			if fmt.Sprint(got) != test.want || err != nil {
				t.Errorf("got %v, %v, want %s", got, err, test.want)
			}
			after := rdb.PTTL(ctx, name).Val()
			if test.key == "S" {
				after = time.Until(time.UnixMilli(int64(rdb.ZScore(ctx, name, test.value).Val())))
			}
			exists := rdb.Exists(ctx, name).Val() == 1
			if exists != (test.value != "") || exists && (after > test.after || after < test.after-time.Minute/2) {
				t.Errorf("exists %v, for %v, want %v", exists, after, test.after)
			}
		})
	}
}
