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
		{"assigned by a release, and confirmed after others were granted", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(2, "k", "b", two, 2, 4)
			t.share(3, "k", "c", two, 5, 30).ValidUntil = (28 + ttl) * ms
			t.release("a", 20, 22)
			t.share(4, "k", "d", two+1, 23, 25)
			t.release("b", 40, 41)
			t.release("c", 40, 41)
			t.release("d", 40, 41)
		}, nil},
		{"two assigned by a release, and confirmed after others were granted", func(t *builder) {
			t.share(1, "k", "a", 0, 1, 3)
			t.share(2, "k", "b", two, 5, 30).ValidUntil = (28 + ttl) * ms
			t.share(3, "k", "c", two, 6, 31).ValidUntil = (28 + ttl) * ms
			t.release("a", 20, 22)
			t.share(4, "k", "d", unlimited, 23, 25)
			t.share(5, "k", "e", unlimited, 24, 29)
			t.release("b", 40, 41)
			t.release("c", 40, 41)
			t.release("d", 40, 41)
			t.release("e", 40, 41)
		}, nil},
		{"confirmed after others were granted, although there was no room since the call", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(2, "k", "b", two, 2, 4)
			t.release("a", 10, 12)
			t.share(4, "k", "d", two+1, 13, 15)
			t.share(3, "k", "c", two, 16, 30).ValidUntil = (28 + ttl) * ms
			t.release("b", 40, 41)
			t.release("c", 40, 41)
			t.release("d", 40, 41)
		}, []string{"linearizability"}},
		{"granted to an earlier caller of its process, which got another one", func(t *builder) {
			t.share(3, "k", "b", two, 2, 12)
			t.share(4, "k", "c", two+1, 13, 14)
			t.share(3, "k", "d", two, 15, 17).ValidUntil = (10 + ttl) * ms
			t.release("b", 40, 41)
			t.release("c", 40, 41)
			t.release("d", 40, 41)
		}, nil},
		{"granted to an earlier caller of its process, which gave up", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			gaveUp := t.call(3, history.Lock, "k", 5, 11, history.WaitTimeout)
			gaveUp.Limit, gaveUp.Wait = two, 6*ms
			t.share(4, "k", "c", two+1, 12, 14)
			t.share(3, "k", "d", two, 15, 17).ValidUntil = (10 + ttl) * ms
			t.release("a", 40, 41)
			t.release("c", 40, 41)
			t.release("d", 40, 41)
		}, nil},
		{"granted to the first of two earlier callers of its process", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			for _, from := range []int64{5, 200} {
				gaveUp := t.call(3, history.Lock, "k", from, from+4, history.WaitTimeout)
				gaveUp.Limit, gaveUp.Wait = two, 4*ms
			}
			t.share(4, "k", "c", two+1, 8, 9)
			t.share(3, "k", "d", two, 270, 272).ValidUntil = (10 + ttl) * ms
			t.release("a", 340, 341)
			t.release("c", 340, 341)
			t.release("d", 340, 341)
		}, nil},
		{"valid since before its call, although the earlier caller of its process gave up long before", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			gaveUp := t.call(3, history.Lock, "k", 5, 11, history.WaitTimeout)
			gaveUp.Limit, gaveUp.Wait = two, 6*ms
			t.share(4, "k", "c", two+1, 12, 14)
			t.share(3, "k", "d", two, 290, 292).ValidUntil = (10 + ttl) * ms
			t.release("a", 340, 341)
			t.release("c", 340, 341)
			t.release("d", 340, 341)
		}, []string{"linearizability"}},
		{"valid since before its call, although the earlier caller of its process had another limit", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(3, "k", "b", two+1, 5, 11)
			t.release("b", 12, 13)
			t.share(4, "k", "c", two+1, 14, 15)
			t.share(3, "k", "d", two, 16, 17).ValidUntil = (10 + ttl) * ms
			t.release("a", 40, 41)
			t.release("c", 40, 41)
			t.release("d", 40, 41)
		}, []string{"linearizability"}},
		{"confirmed long after others were granted", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(2, "k", "b", two, 2, 4)
			t.share(3, "k", "c", two, 5, 430).ValidUntil = (428 + ttl) * ms
			t.release("a", 20, 22)
			t.share(4, "k", "d", two+1, 23, 25)
			t.release("b", 440, 441)
			t.release("c", 440, 441)
			t.release("d", 440, 441)
		}, []string{"linearizability"}},
		{"an exclusive lease refused beside one that is granted to the next caller of the process", func(t *builder) {
			t.share(3, "k", "b", two, 2, 4)
			t.release("b", 5, 6)
			t.refuse(4, "k", 0, 10, 11)
			t.share(3, "k", "d", two, 12, 14).ValidUntil = (9 + ttl) * ms
			t.release("d", 20, 21)
		}, nil},
		{"valid since before its call, although no earlier call of its process waited", func(t *builder) {
			t.share(1, "k", "a", two, 1, 3)
			t.share(4, "k", "c", two+1, 12, 14)
			t.share(3, "k", "d", two, 15, 17).ValidUntil = (10 + ttl) * ms
			t.release("a", 40, 41)
			t.release("c", 40, 41)
			t.release("d", 40, 41)
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
