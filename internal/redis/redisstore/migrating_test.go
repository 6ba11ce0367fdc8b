package redisstore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A script that runs amid the move of its slot, while its keys are all still there,
// does what it always does. The server lets it start, but would end it in the midst
// if it touched a key that it has just emptied or deleted.
func TestTransitionsAmidAMove(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	from := cluster.MasterOf(storetest.LockName)
	masters := cluster.Masters()
	to := masters[(slices.Index(masters, from)+1)%len(masters)]
	rdb, slot := from.Client(t), cluster.Slot(storetest.LockName)
	tell := func(node *redistest.Server, order ...any) {
		t.Helper()
		if err := node.Client(t).Do(t.Context(), append([]any{"CLUSTER", "SETSLOT", slot}, order...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	id := func(node *redistest.Server) string { return node.Client(t).ClusterMyID(t.Context()).Val() }

	begins := func(test transitionTest) bool { return test.before.Record == nil }
	tests := slices.Concat(transitions, slices.DeleteFunc(slices.Clone(ofAttempts), begins), emptied)
	tests = slices.DeleteFunc(tests, func(test transitionTest) bool {
		return test.before.Value == "" || len(test.before.Queue) == 0 // it would be told to try again
	})
	if len(tests) < 20 {
		t.Errorf("%d transitions begin with all keys", len(tests))
	}
	for i := range suite.Size(1, 2) * len(tests) { // the fast tier runs each in one of the modes
		test, mode := tests[i%len(tests)], []string{"P", "S"}[(i+i/len(tests))%2]
		t.Run(fmt.Sprintf("%s, mode %s", test.name, mode), func(t *testing.T) {
			s := newStore(t, rdb)
			s.setMode(mode)
			test.before.Put(t, rdb)
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
			if storetest.IsTTL(got.remaining, test.first.remaining) && test.first.remaining != 0 {
				got.remaining = test.first.remaining
			}
			if got != test.first {
				t.Errorf("%+v, want %+v", got, test.first)
			}
			test.after.Check(t, rdb)
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
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Me1}},
		first:  outcome{granted: true},
		after:  storetest.State{Value: storetest.Me1, TTL: storetest.TTL},
	},
	{
		name: "rejoin behind the last of the line", do: inCluster(rejoin),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
		first:  outcome{end: store.Handed},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Me2}},
	},
	{
		name: "rejoin where only our own token waits: kept", do: rejoin,
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Me1}},
		first:  outcome{end: store.Kept},
		after:  storetest.State{Value: storetest.Me2, TTL: storetest.TTL},
	},
	{
		name: "commit, where only our own token waits", do: finish(store.Commit),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Me1}, Record: runs(storetest.Me1, "1")},
		first:  outcome{end: store.Freed, stored: store.WasStored},
		after:  storetest.State{Record: done(storetest.Me1)},
	},
	{
		name: "seal, and hand over to the last of the line", do: inCluster(finish(store.Seal)),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}, Record: runs(storetest.Me1, "1")},
		first:  outcome{end: store.Handed, stored: store.WasStored},
		after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Record: sealed(storetest.Me1)},
	},
	{
		name: "abort, where only our own token waits", do: finish(store.Abort),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Me1}, Record: runs(storetest.Me1, "1")},
		first:  outcome{end: store.Freed, stored: store.WasStored},
		after:  storetest.State{Record: aborted(storetest.Me1), RecordTTL: abortTTL},
	},
	{
		name: "begin anew, where only our own token waits", do: begin(rerun),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Me1}, Record: runs(storetest.Bob1, "1")},
		first:  outcome{granted: true, number: 2},
		after:  storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "2")},
	},
	{
		name: "begin what is done, where only our own token waits: freed", do: begin(),
		before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Me1}, Record: sealed(storetest.Bob1)},
		first:  outcome{verdict: store.Sealed},
		after:  storetest.State{Record: sealed(storetest.Bob1)},
	},
}
