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
	full := func(t *testing.T, before string) {
		t.Helper()
		stateOf(before).Put(t, rdb)
		if err := rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rdb.ConfigSet(context.Background(), "maxmemory", "0") })
	}
	for _, test := range []struct{ name, call, before string }{
		{"a free key", "enqueue", ""},
		{"a free key with a queue", "enqueue", "| B1 C1"},
		{"another's key", "enqueue", "B2 ttl"},
		{"another's key, fresh", "fresh", "B2 ttl | C1"},
		{"a free key", "nowait", ""},
		{"a free key with a queue", "nowait", "| B1 C1"},
		{"a free key", "begin", ""},
		{"a free key with a queue", "begin", "| B1 C1"},
		{"another's key", "begin", "B2 ttl | | R B2 1"},
		{"a free key", "briefly shared", ""},
		{"a free key", "shared", ""},
		{"a free key", "try shared", ""},
		{"beside another lease", "try shared", "shared ttl | | | A1*=ttl"},
		{"beside another lease", "briefly shared", "shared ttl | | | A1*=ttl"},
		{"behind a queue", "briefly shared", "B2 ttl | B1"},
		{"exclusive, while shared leases are out", "enqueue", "shared ttl | | | A1*=ttl"},
		{"a free key, after an attempt that died", "rerun", "| | R B2 1"},
		{"a ticket", "accept", "D1 ttl"},
	} {
		t.Run("refuses "+test.call+": "+test.name, func(t *testing.T) {
			defer subscribeAs(t, rdb, storetest.Bob).end(t, rdb)
			full(t, test.before)
			checkRefused(t, rdb, calls[test.call], "OOM")
		})
	}
	for _, test := range []struct{ name, call, before, after string }{
		{"confirms a grant", "enqueue", "A1 claim | B1", "A1 ttl | B1"},
		{"renews", "renew", "A1 claim | B1", "A1 ttl | B1"},
		{"frees", "release", "A1 ttl", ""},
		{"hands over", "release", "A1 ttl | C1 B1", "B1 claim"},
		{"hands over and rejoins", "rejoin", "A1 ttl | B1", "B1 claim | A2"},
		{"keeps", "rejoin", "A1 ttl", "A2 ttl"},
		{"confirms a grant apart", "apart", "A1 claim | B1", "A1 ttl | B1"},
		{"hands over apart", "release apart", "A1 ttl | C1 B1", "B1 claim"},
		{"hands over apart and rejoins", "rejoin apart", "A1 ttl | B1", "B1 claim | A2"},
		{"keeps apart", "rejoin apart", "A1 ttl", "A2 ttl"},
		{"hands over to a ticket", "to a ticket", "A1 ttl", "D1 claim"},
		{"begins in a grant", "begin", "A1 claim | B1", "A1 ttl | B1 | R A1 1"},
		{"returns a verdict and hands over", "begin", "A1 claim | B1 | D C1", "B1 claim | | D C1"},
		{"commits and hands over", "commit", "A1 ttl | B1 | R A1 1", "B1 claim | | D A1"},
		{"confirms a shared lease", "briefly shared", "shared claim | | | A1/2=claim", "shared ttl | | | A1/2=ttl"},
		{"confirms a shared lease", "try shared", "shared claim | | | A1/2=claim", "shared ttl | | | A1/2=ttl"},
		{"confirms a hand-off to a shared token", "briefly shared", "A1/2 claim", "shared ttl | | | A1/2=ttl"},
		{"renews a shared lease", "renew shared", "shared claim #77 | | | A1/2=claim", "shared ttl #77 | | | A1/2=ttl"},
		{"hands over a permit", "release shared", "shared ttl | B1 | | A1/2=ttl", "B1 claim"},
		{"commits without a record", "commit", "", "| | D A1"},
		{"seals", "seal", "A1 ttl | | R A1 1", "| | U A1"},
		{"aborts an attempt that has not begun", "abort", "| A1", "| | A A1 @abort"},
		{"forgets", "resolve", "| | R B1 1", "| | A B1 x=B1"},
		{"answers", "answer", "| | R B1 1", "| | D resolved:B1"},
		{"reads an outcome", "outcome", "| | R B1 1", "| | R B1 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			defer subscribeAs(t, rdb, storetest.Bob).end(t, rdb)
			full(t, test.before)
			if _, err := calls[test.call](t, newStore(t, rdb)); err != nil {
				t.Error(err)
			}
			stateOf(test.after).Check(t, rdb)
		})
	}
}
