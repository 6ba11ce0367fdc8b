package redisstore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A script that runs amid the move of its slot, while its keys are all still there,
// does what it always does. The server lets it start, but would end it in the midst
// if it touched a key that it has just emptied or deleted.
func TestTransitionsAmidAMove(t *testing.T) {
	cluster := redistest.StartCluster(t)
	from := cluster.MasterOf(theLock)
	masters := cluster.Masters()
	to := masters[(slices.Index(masters, from)+1)%len(masters)]
	rdb, slot := from.Client(t), cluster.Slot(theLock)
	tell := func(node *redistest.Server, order ...any) {
		t.Helper()
		if err := node.Client(t).Do(t.Context(), append([]any{"CLUSTER", "SETSLOT", slot}, order...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	id := func(node *redistest.Server) string { return node.Client(t).ClusterMyID(t.Context()).Val() }

	begins := func(test transitionTest) bool { return test.before.record == nil }
	tests := slices.Concat(transitions, slices.DeleteFunc(slices.Clone(ofAttempts), begins), emptied)
	tests = slices.DeleteFunc(tests, func(test transitionTest) bool {
		return test.before.value == "" || len(test.before.line) == 0 // it would be told to try again
	})
	if len(tests) < 20 {
		t.Errorf("%d transitions begin with all keys", len(tests))
	}
	for i := range 2 * len(tests) {
		test, mode := tests[i/2], []string{"P", "S"}[i%2]
		t.Run(fmt.Sprintf("%s, mode %s", test.name, mode), func(t *testing.T) {
			s := newStore(t, rdb)
			s.mode.Store(mode)
			test.before.put(t, rdb)
			audit := listenInMode(t, rdb, mode, test.hears...)
			defer func() {
				for _, conn := range audit.conns {
					_ = conn.Close()
				}
			}()
			tell(to, "IMPORTING", id(from))
			tell(from, "MIGRATING", id(to))
			defer func() {
				tell(from, "STABLE")
				tell(to, "STABLE")
			}()
			got := test.do(t, s)
			if isLife(got.remaining, test.first.remaining) && test.first.remaining != 0 {
				got.remaining = test.first.remaining
			}
			if got != test.first {
				t.Errorf("%+v, want %+v", got, test.first)
			}
			test.after.check(t, rdb)
			if said := audit.heard(t, rdb); !slices.Equal(said, test.said) {
				t.Errorf("said %q, want %q", said, test.said)
			}
		})
	}
}

// emptied are transitions that empty the line, or write a record anew.
var emptied = []transitionTest{
	{
		name: "confirm a late take: the line is empty", do: enqueue,
		before: state{value: me1, ttl: claim, line: []string{me1}},
		first:  outcome{granted: true},
		after:  state{value: me1, ttl: ttl},
	},
	{
		name: "rejoin behind the last of the line", do: inCluster(rejoin),
		before: state{value: me1, ttl: ttl, line: []string{bob1}},
		first:  outcome{end: store.Handed},
		after:  state{value: bob1, ttl: claim, line: []string{me2}},
	},
	{
		name: "rejoin where only our own token waits: kept", do: rejoin,
		before: state{value: me1, ttl: claim, line: []string{me1}},
		first:  outcome{end: store.Kept},
		after:  state{value: me2, ttl: ttl},
	},
	{
		name: "commit, where only our own token waits", do: finish(store.Commit),
		before: state{value: me1, ttl: ttl, line: []string{me1}, record: runs(me1, "1")},
		first:  outcome{end: store.Freed, stored: store.WasStored},
		after:  state{record: done(me1)},
	},
	{
		name: "seal, and hand over to the last of the line", do: inCluster(finish(store.Seal)),
		before: state{value: me1, ttl: ttl, line: []string{bob1}, record: runs(me1, "1")},
		first:  outcome{end: store.Handed, stored: store.WasStored},
		after:  state{value: bob1, ttl: claim, record: sealed(me1)},
	},
	{
		name: "abort, where only our own token waits", do: finish(store.Abort),
		before: state{value: me1, ttl: ttl, line: []string{me1}, record: runs(me1, "1")},
		first:  outcome{end: store.Freed, stored: store.WasStored},
		after:  state{record: aborted(me1), recordTTL: abortLife},
	},
	{
		name: "begin anew, where only our own token waits", do: begin(rerun),
		before: state{value: me1, ttl: claim, line: []string{me1}, record: runs(bob1, "1")},
		first:  outcome{granted: true, number: 2},
		after:  state{value: me1, ttl: ttl, record: runs(me1, "2")},
	},
	{
		name: "begin what is done, where only our own token waits: freed", do: begin(),
		before: state{value: me1, ttl: claim, line: []string{me1}, record: sealed(bob1)},
		first:  outcome{verdict: store.Sealed},
		after:  state{record: sealed(bob1)},
	},
}
