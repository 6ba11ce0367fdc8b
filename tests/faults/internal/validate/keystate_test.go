package validate

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// share adds a Lock that is granted a shared lease without a fencing number.
func (t *builder) share(process int, key, lease string, limit int, from, to int64) *history.Op {
	op := t.grant(process, key, lease, from, to, 0)
	op.Limit = limit
	return op
}

// refuse adds a refused Try of a shared lease, or of an exclusive one.
func (t *builder) refuse(process int, key string, limit int, from, to int64) {
	t.call(process, history.Try, key, from, to, history.Busy).Limit = limit
}

const unlimited = history.Unlimited

// Histories of shared leases have no fencing numbers, except where a test adds them.
func runSharedCases(t *testing.T, cases []testCase) {
	t.Helper()
	for i := range cases {
		build := cases[i].build
		cases[i].build = func(t *builder) {
			t.Unfenced = true
			build(t)
		}
	}
	runCases(t, cases)
}

func TestPermits(t *testing.T) {
	t.Parallel()
	const two = 2
	bad := []string{"linearizability", "limit"}
	runSharedCases(t, []testCase{
		{"as many as the limit", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(2, "k", "b", two, 2, 4)
			t.release("a", 20, 22)
			t.share(3, "k", "c", two, 5, 21)
			t.release("b", 30, 31)
			t.release("c", 30, 31)
		}, nil},
		{"one more than the limit", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(2, "k", "b", two, 2, 4)
			t.share(3, "k", "c", two, 5, 10)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
			t.release("c", 30, 31)
		}, bad},
		{"one more, granted before any holder relies on its lease", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(2, "k", "b", two, 2, 4)
			t.share(3, "k", "c", two, 5, 10)
			t.end(history.Release, "a", 20, 22, history.Done).ReliedUntil = 4 * ms
			t.release("b", 30, 31)
			t.release("c", 30, 31)
		}, []string{"linearizability"}},
		{"one more after the first holder died and expired", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.kill(1, 50)
			t.share(2, "k", "b", two, 2, 4).ValidUntil = 900 * ms
			t.share(3, "k", "c", two, 60, 502)
			t.release("b", 510, 511).ValidUntil = 900 * ms
			t.release("c", 530, 531).ValidUntil = 900 * ms
		}, nil},
		{"one more before the first holder, which died, expired", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.kill(1, 50)
			t.share(2, "k", "b", two, 2, 4).ValidUntil = 900 * ms
			t.share(3, "k", "c", two, 60, 499)
			t.release("b", 510, 511).ValidUntil = 900 * ms
			t.release("c", 530, 531).ValidUntil = 900 * ms
		}, []string{"linearizability"}},
		{"two leases for one that expired", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.kill(1, 50)
			t.share(2, "k", "b", two, 2, 4).ValidUntil = 2000 * ms
			t.share(3, "k", "c", two, 60, 502)
			t.share(4, "k", "d", two, 60, 503)
			t.release("b", 610, 611).ValidUntil = 2000 * ms
			t.release("c", 630, 631).ValidUntil = 2000 * ms
			t.release("d", 630, 631).ValidUntil = 2000 * ms
		}, bad},
		{"handed off within a process", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(2, "k", "b", two, 2, 4)
			t.share(1, "k", "c", two, 5, 21).Episode = "a"
			t.release("a", 20, 22)
			t.release("b", 30, 31)
			t.release("c", 30, 31)
		}, nil},
		{"handed off within a process before the release was called", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(2, "k", "b", two, 2, 4)
			t.share(1, "k", "c", two, 5, 19).Episode = "a"
			t.release("a", 20, 22)
			t.release("b", 30, 31)
			t.release("c", 30, 31)
		}, bad},
		{"handed off while more leases within a higher limit are out", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(2, "k", "b", two+1, 4, 5)
			t.share(3, "k", "c", two+1, 6, 7)
			t.share(1, "k", "d", two, 5, 21).Episode = "a"
			t.release("a", 20, 22)
			t.release("b", 30, 31)
			t.release("c", 30, 31)
			t.release("d", 30, 31)
		}, nil},
		{"granted between two leases of an episode", func(t *builder) {
			t.share(1, "k", "a", 1, 1, 3)
			t.release("a", 20, 21)
			t.share(2, "k", "b", 1, 22, 23)
			t.release("b", 24, 25)
			t.share(1, "k", "c", 1, 26, 27).Episode = "a"
			t.release("c", 30, 31)
		}, []string{"linearizability"}},
		{"two limits at once, each within its own", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(2, "k", "b", two, 2, 4)
			t.share(3, "k", "c", two+1, 5, 6)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
			t.release("c", 30, 31)
		}, nil},
		{"two limits at once, above the lower one", func(t *builder) {
			t.share(1, "k", "a", two+1, 1, 3)
			t.share(2, "k", "b", two+1, 2, 4)
			t.share(3, "k", "c", two, 5, 6)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
			t.release("c", 30, 31)
		}, []string{"linearizability"}},
		{"refused at the limit", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(2, "k", "b", two, 2, 4)
			t.refuse(3, "k", two, 5, 6)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
		}, nil},
		{"refused below the limit", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.refuse(3, "k", two, 5, 6)
			t.release("a", 20, 22)
		}, []string{"linearizability"}},
		{"an exclusive lease refused beside one permit", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.refuse(3, "k", 0, 5, 6)
			t.release("a", 20, 22)
		}, nil},
		{"a limit that is none", func(t *builder) {
			t.refuse(3, "k", -2, 5, 6)
		}, []string{"malformed"}},
	})
}

func TestReadersAndWriters(t *testing.T) {
	t.Parallel()
	bad := []string{"linearizability", "mutual-exclusion"}
	runSharedCases(t, []testCase{
		{"readers beside each other, then a writer", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.share(2, "k", "b", unlimited, 2, 4)
			t.grant(3, "k", "w", 3, 32, 0)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
			t.release("w", 40, 41)
			t.share(4, "k", "c", unlimited, 33, 42)
			t.release("c", 43, 44)
		}, nil},
		{"a writer beside a reader", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.grant(3, "k", "w", 3, 10, 0)
			t.release("a", 20, 22)
			t.release("w", 40, 41)
		}, bad},
		{"a reader beside a writer", func(t *builder) {
			t.grant(3, "k", "w", 1, 3, 0)
			t.share(1, "k", "a", unlimited, 5, 10)
			t.release("a", 20, 22)
			t.release("w", 40, 41)
		}, bad},
		{"a writer after one of two readers", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.share(2, "k", "b", unlimited, 2, 4)
			t.grant(3, "k", "w", 3, 25, 0)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
			t.release("w", 40, 41)
		}, bad},
		{"a writer after the last reader died and expired", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.share(2, "k", "b", unlimited, 2, 4)
			t.kill(2, 10)
			t.grant(3, "k", "w", 300, 503, 0)
			t.release("a", 20, 22)
			t.release("w", 510, 511)
		}, nil},
		{"a writer before the last reader, which died, expired", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.share(2, "k", "b", unlimited, 2, 4)
			t.kill(2, 10)
			t.grant(3, "k", "w", 300, 501, 0)
			t.release("a", 20, 22)
			t.release("w", 510, 511)
		}, []string{"linearizability"}},
		{"a permit beside a reader", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.share(2, "k", "b", 1, 4, 5)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
		}, []string{"linearizability"}},
		{"a reader beside a permit", func(t *builder) {
			t.share(2, "k", "b", 1, 1, 3)
			t.share(1, "k", "a", unlimited, 4, 5)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
		}, nil},
		{"a reader refused beside a reader", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.refuse(2, "k", unlimited, 5, 6)
			t.release("a", 20, 22)
		}, []string{"linearizability"}},
		{"a reader refused beside a writer", func(t *builder) {
			t.grant(1, "k", "w", 1, 3, 0)
			t.refuse(2, "k", unlimited, 5, 6)
			t.release("w", 20, 22)
		}, nil},
		{"a reader refused behind a writer that waits", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3)
			t.grant(3, "k", "w", 4, 24, 0)
			t.refuse(2, "k", unlimited, 5, 6)
			t.release("a", 20, 22)
			t.release("w", 30, 31)
		}, nil},
		{"a reader refused behind a waiter that died", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3).ValidUntil = 9000 * ms
			t.call(3, history.Lock, "k", 4, 0, history.None)
			t.kill(3, 100)
			t.refuse(2, "k", unlimited, 2000, 2001)
			t.release("a", 3000, 3001).ValidUntil = 9000 * ms
		}, nil},
		{"a reader refused behind a waiter that died long ago", func(t *builder) {
			t.share(1, "k", "a", unlimited, 1, 3).ValidUntil = 9000 * ms
			t.call(3, history.Lock, "k", 4, 0, history.None)
			t.kill(3, 100)
			t.refuse(2, "k", unlimited, 2201, 2202)
			t.release("a", 3000, 3001).ValidUntil = 9000 * ms
		}, []string{"linearizability"}},
	})
}

func TestNumbersOfPhases(t *testing.T) {
	t.Parallel()
	reader := func(t *builder, process int, lease string, from, to, fence int64) {
		op := t.grant(process, "k", lease, from, to, fence)
		op.Limit = unlimited
	}
	runCases(t, []testCase{
		{"one number for readers that overlap, and a higher one for the writer", func(t *builder) {
			reader(t, 1, "a", 1, 3, 10)
			reader(t, 2, "b", 2, 4, 10)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
			t.grant(3, "k", "w", 3, 32, 11)
			t.release("w", 40, 41)
			reader(t, 1, "c", 35, 42, 12)
			t.release("c", 43, 44)
		}, nil},
		{"the writer has the number of the readers", func(t *builder) {
			reader(t, 1, "a", 1, 3, 10)
			t.release("a", 20, 22)
			t.grant(3, "k", "w", 23, 32, 10)
			t.release("w", 40, 41)
		}, []string{"fences", "linearizability"}},
		{"a reader has the number of the writer", func(t *builder) {
			t.grant(3, "k", "w", 1, 3, 10)
			t.release("w", 20, 22)
			reader(t, 1, "a", 23, 25, 10)
			t.release("a", 30, 31)
		}, []string{"fences", "linearizability"}},
		{"a later reader has a lower number", func(t *builder) {
			reader(t, 1, "a", 1, 3, 10)
			reader(t, 2, "b", 4, 5, 9)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
		}, []string{"fences", "linearizability"}},
		{"readers that overlap have two numbers", func(t *builder) {
			reader(t, 1, "a", 1, 3, 10)
			reader(t, 2, "b", 4, 5, 11)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
		}, []string{"linearizability"}},
		{"a reader without a number", func(t *builder) {
			reader(t, 1, "a", 1, 3, 10)
			reader(t, 2, "b", 4, 5, 0)
			t.release("a", 20, 22)
			t.release("b", 30, 31)
		}, []string{"fences"}},
	})
}

func TestSharedLeasesAfterLoss(t *testing.T) {
	t.Parallel()
	runSharedCases(t, []testCase{
		{"a reader beside a stale reader, for long", func(t *builder) {
			t.loseData(100, 200)
			t.share(1, "k", "a", unlimited, 1, 3).ValidUntil = 5000 * ms
			t.share(2, "k", "b", unlimited, 300, 301).ValidUntil = 5000 * ms
			t.release("a", 2000, 2001).ValidUntil = 5000 * ms
			t.release("b", 2000, 2001).ValidUntil = 5000 * ms
		}, nil},
		{"one of two permits beside a stale one, for long", func(t *builder) {
			t.loseData(100, 200)
			t.share(1, "k", "a", 2, 1, 3).ValidUntil = 5000 * ms
			t.share(2, "k", "b", 2, 300, 301).ValidUntil = 5000 * ms
			t.release("a", 2000, 2001).ValidUntil = 5000 * ms
			t.release("b", 2000, 2001).ValidUntil = 5000 * ms
		}, nil},
		{"two permits beside a stale one, for long", func(t *builder) {
			t.loseData(100, 200)
			t.share(1, "k", "a", 2, 1, 3).ValidUntil = 5000 * ms
			t.share(2, "k", "b", 2, 300, 301).ValidUntil = 5000 * ms
			t.share(3, "k", "c", 2, 302, 303).ValidUntil = 5000 * ms
			t.release("a", 2000, 2001).ValidUntil = 5000 * ms
			t.release("b", 2000, 2001).ValidUntil = 5000 * ms
			t.release("c", 2000, 2001).ValidUntil = 5000 * ms
		}, []string{"stale-holder"}},
		{"a reader beside a stale writer, for long", func(t *builder) {
			t.loseData(100, 200)
			t.grant(1, "k", "a", 1, 3, 0).ValidUntil = 5000 * ms
			t.share(2, "k", "b", unlimited, 300, 301).ValidUntil = 5000 * ms
			t.release("a", 2000, 2001).ValidUntil = 5000 * ms
			t.release("b", 2000, 2001).ValidUntil = 5000 * ms
		}, []string{"stale-holder"}},
	})
}
