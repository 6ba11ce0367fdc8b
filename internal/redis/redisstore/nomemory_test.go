package redisstore

import (
	"context"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestServerWithoutMemoryRefusesOnlyNewLocks(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	full := func(t *testing.T, before storetest.State) {
		t.Helper()
		before.Put(t, rdb)
		if err := rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rdb.ConfigSet(context.Background(), "maxmemory", "0") })
	}
	for _, test := range []struct {
		name, call string
		before     storetest.State
	}{
		{"a free key", "enqueue", storetest.State{}},
		{"a free key with a queue", "enqueue", storetest.State{Queue: []string{storetest.Bob1, storetest.Eve1}}},
		{"another's key", "enqueue", storetest.State{Value: storetest.Bob2, TTL: storetest.TTL}},
		{"a free key", "nowait", storetest.State{}},
		{"a free key with a queue", "nowait", storetest.State{Queue: []string{storetest.Bob1, storetest.Eve1}}},
		{"a free key", "begin", storetest.State{}},
		{"a free key with a queue", "begin", storetest.State{Queue: []string{storetest.Bob1, storetest.Eve1}}},
		{"another's key", "begin", storetest.State{Value: storetest.Bob2, TTL: storetest.TTL, Record: runningRecord(storetest.Bob2, "1")}},
		{"a free key", "briefly shared", storetest.State{}},
		{"a free key", "shared", storetest.State{}},
		{"beside another lease", "briefly shared", storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Shared: leases{storetest.MeReader1: storetest.TTL}}},
		{"behind a queue", "briefly shared", storetest.State{Value: storetest.Bob2, TTL: storetest.TTL, Queue: []string{storetest.Bob1}}},
		{"exclusive, while shared leases are out", "enqueue", storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Shared: leases{storetest.MeReader1: storetest.TTL}}},
		{"a free key, after an attempt that died", "rerun", storetest.State{Record: runningRecord(storetest.Bob2, "1")}},
	} {
		t.Run("refuses "+test.call+": "+test.name, func(t *testing.T) {
			defer subscribeAs(t, rdb, storetest.Bob).end(t, rdb)
			full(t, test.before)
			checkRefused(t, rdb, calls[test.call], "OOM")
		})
	}
	for _, test := range []struct {
		name, call    string
		before, after storetest.State
	}{
		{
			"confirms a grant", "enqueue",
			storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1}},
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
		},
		{
			"renews", "renew",
			storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1}},
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
		},
		{"frees", "release", storetest.State{Value: storetest.Me1, TTL: storetest.TTL}, storetest.State{}},
		{
			"hands over", "release",
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Eve1, storetest.Bob1}},
			storetest.State{Value: storetest.Bob1, TTL: storetest.Claim},
		},
		{
			"hands over and rejoins", "rejoin",
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
			storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Me2}},
		},
		{"keeps", "rejoin", storetest.State{Value: storetest.Me1, TTL: storetest.TTL}, storetest.State{Value: storetest.Me2, TTL: storetest.TTL}},
		{
			"begins in a grant", "begin",
			storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1}},
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}, Record: runningRecord(storetest.Me1, "1")},
		},
		{
			"returns a verdict and hands over", "begin",
			storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1}, Record: doneRecord(storetest.Eve1)},
			storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Record: doneRecord(storetest.Eve1)},
		},
		{
			"commits and hands over", "commit",
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}, Record: runningRecord(storetest.Me1, "1")},
			storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Record: doneRecord(storetest.Me1)},
		},
		{
			"confirms a shared lease", "briefly shared",
			storetest.State{Value: storetest.Marker, TTL: storetest.Claim, Shared: leases{storetest.MePermit1: storetest.Claim}},
			storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Shared: leases{storetest.MePermit1: storetest.TTL}},
		},
		{
			"confirms a hand-off to a shared token", "briefly shared",
			storetest.State{Value: storetest.MePermit1, TTL: storetest.Claim},
			storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Shared: leases{storetest.MePermit1: storetest.TTL}},
		},
		{
			"renews a shared lease", "renew shared",
			storetest.State{Value: "shared 77 - 0", TTL: storetest.Claim, Shared: leases{storetest.MePermit1: storetest.Claim}},
			storetest.State{Value: "shared 77 - 0", TTL: storetest.TTL, Shared: leases{storetest.MePermit1: storetest.TTL}},
		},
		{
			"hands over a permit", "release shared",
			storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Queue: []string{storetest.Bob1}, Shared: leases{storetest.MePermit1: storetest.TTL}},
			storetest.State{Value: storetest.Bob1, TTL: storetest.Claim},
		},
		{"commits without a record", "commit", storetest.State{}, storetest.State{Record: doneRecord(storetest.Me1)}},
		{
			"seals", "seal",
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "1")},
			storetest.State{Record: sealedRecord(storetest.Me1)},
		},
		{
			"aborts an attempt that has not begun", "abort",
			storetest.State{Queue: []string{storetest.Me1}},
			storetest.State{Record: abortedRecord(storetest.Me1), RecordTTL: abortTTL},
		},
		{"forgets", "resolve", storetest.State{Record: runningRecord(storetest.Bob1, "1")}, storetest.State{Record: forgottenRecord(storetest.Bob1)}},
		{
			"answers", "answer",
			storetest.State{Record: runningRecord(storetest.Bob1, "1")},
			storetest.State{Record: resolvedRecord(storetest.Bob1, storetest.Record)},
		},
		{
			"reads an outcome", "outcome",
			storetest.State{Record: runningRecord(storetest.Bob1, "1")},
			storetest.State{Record: runningRecord(storetest.Bob1, "1")},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			defer subscribeAs(t, rdb, storetest.Bob).end(t, rdb)
			full(t, test.before)
			if err := calls[test.call](t, newStore(t, rdb)); err != nil {
				t.Error(err)
			}
			test.after.Check(t, rdb)
		})
	}
}
