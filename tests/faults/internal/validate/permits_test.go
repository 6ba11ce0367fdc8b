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
