package validate

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// In these histories a hand-off takes at most 375 ms.
func TestIdleKeys(t *testing.T) {
	t.Parallel()
	bad := []string{"idle"}
	lease := func(t *builder, process int, name string, limit int, asked, from, to int64) {
		t.share(process, "k", name, limit, asked, from).ValidUntil = 9000 * ms
		t.release(name, to, to+1).ValidUntil = 9000 * ms
	}
	cases := []testCase{
		{"served at once", func(t *builder) {
			lease(t, 1, "a", 0, 1, 3, 500)
			lease(t, 2, "b", 0, 10, 870, 900)
		}, nil},
		{"served late", func(t *builder) {
			lease(t, 1, "a", 0, 1, 3, 500)
			lease(t, 2, "b", 0, 10, 1300, 1400)
		}, bad},
		{"served late, though a call that came later was not", func(t *builder) {
			lease(t, 1, "a", 0, 1, 3, 500)
			lease(t, 2, "b", 0, 10, 1300, 1400)
			lease(t, 3, "c", 0, 700, 1500, 1600)
		}, bad},
		{"asked late", func(t *builder) {
			lease(t, 1, "a", 0, 1, 3, 500)
			lease(t, 2, "b", 0, 1000, 1300, 1400)
		}, nil},
		{"a permit left, and served late", func(t *builder) {
			lease(t, 1, "a", 2, 1, 3, 500)
			lease(t, 2, "b", 2, 1, 4, 5000)
			lease(t, 3, "c", 2, 10, 1300, 5000)
		}, bad},
		{"no permit left", func(t *builder) {
			lease(t, 1, "a", 2, 1, 3, 2000)
			lease(t, 2, "b", 2, 1, 4, 5000)
			lease(t, 3, "c", 2, 10, 2002, 5000)
		}, nil},
		{"a reader beside a reader, served late", func(t *builder) {
			lease(t, 1, "a", unlimited, 1, 3, 5000)
			lease(t, 2, "b", unlimited, 10, 1300, 5000)
		}, bad},
		{"a reader behind a writer that waits for a reader", func(t *builder) {
			lease(t, 1, "a", unlimited, 1, 3, 2000)
			lease(t, 2, "w", 0, 10, 2002, 2500)
			lease(t, 3, "b", unlimited, 20, 2502, 3000)
		}, nil},
		{"both behind a reader that has left", func(t *builder) {
			lease(t, 1, "a", unlimited, 1, 3, 500)
			lease(t, 2, "w", 0, 10, 1302, 1400)
			lease(t, 3, "b", unlimited, 20, 1402, 1500)
		}, bad},
		{"a holder that died, and expired", func(t *builder) {
			t.share(1, "k", "a", 0, 1, 3)
			t.kill(1, 5)
			lease(t, 2, "b", 0, 10, 1000, 1100)
		}, nil},
		{"a release without a reply", func(t *builder) {
			t.share(1, "k", "a", 0, 1, 3).ValidUntil = 9000 * ms
			t.disrupt("cut", 100, 110)
			t.end(history.Release, "a", 100, 110, history.Unavailable).ReliedUntil = 100 * ms
			lease(t, 2, "b", 0, 400, 1100, 1200)
		}, nil},
		{"a waiter whose process was paused", func(t *builder) {
			lease(t, 1, "a", 0, 1, 3, 500)
			t.pause(2, 600, 1200)
			lease(t, 2, "b", 0, 10, 1300, 1400)
		}, nil},
		{"served late, soon after the beginning", func(t *builder) {
			t.Begun = 560 * ms
			lease(t, 1, "a", 0, 1, 3, 500)
			lease(t, 2, "b", 0, 10, 1300, 1400)
		}, nil},
		{"served late, later after the beginning", func(t *builder) {
			t.Begun = 540 * ms
			lease(t, 1, "a", 0, 1, 3, 500)
			lease(t, 2, "b", 0, 10, 1300, 1400)
		}, bad},
		{"a machine that stalled", func(t *builder) {
			lease(t, 1, "a", 0, 1, 3, 500)
			t.disrupt(Stalled, 600, 700)
			lease(t, 2, "b", 0, 10, 1300, 1400)
		}, nil},
	}
	for i := range cases {
		build := cases[i].build
		cases[i].build = func(t *builder) {
			build(t)
			lease(t, 4, "last", unlimited, 60_000, 60_001, 60_002) // the key has shared leases
		}
	}
	runSharedCases(t, cases)
}

func TestSharedReads(t *testing.T) {
	t.Parallel()
	read := func(t *builder, process int, at, version, checked int64) {
		t.Accesses = append(t.Accesses, history.Access{At: at * ms, Process: process, Client: process, Key: "k", Version: version, CheckedAt: checked * ms})
	}
	reader := func(more func(*builder)) func(*builder) {
		return func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.release("a", 30, 31)
			more(t)
		}
	}
	bad := []string{"shared-reads"}
	runSharedCases(t, []testCase{
		{"the same version twice", reader(func(t *builder) {
			read(t, 1, 4, 7, 0)
			read(t, 1, 20, 7, 19)
		}), nil},
		{"two versions", reader(func(t *builder) {
			read(t, 1, 4, 7, 0)
			read(t, 1, 20, 8, 19)
		}), bad},
		{"two versions, of two readers", reader(func(t *builder) {
			read(t, 1, 4, 7, 0)
			read(t, 2, 20, 8, 19)
		}), nil},
		{"two versions, before and after", reader(func(t *builder) {
			read(t, 1, 2, 6, 1)
			read(t, 1, 4, 7, 0)
			read(t, 1, 20, 7, 19)
			read(t, 1, 40, 8, 39)
		}), nil},
		{"two versions, of a reader that was paused", reader(func(t *builder) {
			t.pause(1, 18, 20)
			read(t, 1, 4, 7, 0)
			read(t, 1, 20, 8, 17)
		}), nil},
		{"two versions, under a stale lease", reader(func(t *builder) {
			t.loseData(10, 15)
			read(t, 1, 4, 7, 0)
			read(t, 1, 20, 8, 19)
		}), nil},
	})
}
