package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
	tests := slices.Concat(transitions, slices.DeleteFunc(slices.Clone(attemptTransitions), begins), emptyingTransitions)
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
			got := test.do(t, s)
			if storetest.IsTTL(got.remaining, test.first.remaining) && test.first.remaining != 0 {
				got.remaining = test.first.remaining
			}
			if got != test.first {
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
var emptyingTransitions = []transitionTest{
	{
		name: "confirm a late take: the queue is empty", do: enqueue,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Me1}},
		first:  outcome{granted: true},
		after:  storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
	},
	{
		name: "rejoin behind the last waiter", do: inModeB(rejoin),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
		first:  outcome{status: store.Handed},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Me2}},
	},
	{
		name: "rejoin while only the own token waits: kept", do: rejoin,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Me1}},
		first:  outcome{status: store.Kept},
		after:  storetest.State{Value: storetest.Me2, TTL: storetest.TTL},
	},
	{
		name: "commit while only the own token waits", do: finish(store.Commit),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Me1}, Record: runningRecord(storetest.Me1, "1")},
		first:  outcome{status: store.Freed, stored: store.WasStored},
		after:  storetest.State{Record: doneRecord(storetest.Me1)},
	},
	{
		name: "seal, and hand over to the last waiter", do: inModeB(finish(store.Seal)),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}, Record: runningRecord(storetest.Me1, "1")},
		first:  outcome{status: store.Handed, stored: store.WasStored},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Record: sealedRecord(storetest.Me1)},
	},
	{
		name: "abort while only the own token waits", do: finish(store.Abort),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Me1}, Record: runningRecord(storetest.Me1, "1")},
		first:  outcome{status: store.Freed, stored: store.WasStored},
		after:  storetest.State{Record: abortedRecord(storetest.Me1), RecordTTL: abortTTL},
	},
	{
		name: "rerun while only the own token waits", do: begin(rerun),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Me1}, Record: runningRecord(storetest.Bob1, "1")},
		first:  outcome{granted: true, number: 2},
		after:  storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "2")},
	},
	{
		name: "begin a sealed request while only the own token waits: freed", do: begin(),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Me1}, Record: sealedRecord(storetest.Bob1)},
		first:  outcome{verdict: store.Sealed},
		after:  storetest.State{Record: sealedRecord(storetest.Bob1)},
	},
}
