package validate

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

func TestFences(t *testing.T) {
	t.Parallel()
	// Attempts have fencing numbers, and no other check compares them.
	begin := func(t *builder, lease string, from, to, fence int64) *history.Op {
		op := t.begin(1, "p", lease, from, to, 1, history.Reject)
		op.Fence = fence
		return op
	}
	abort := func(t *builder, lease string, from, to int64) {
		t.end(history.Abort, lease, from, to, history.Done).ReliedUntil = from * ms
	}
	runCases(t, []testCase{
		{"rise", func(t *builder) {
			begin(t, "a", 1, 2, 10)
			abort(t, "a", 3, 4)
			begin(t, "b", 5, 6, 11)
			abort(t, "b", 7, 8)
		}, nil},
		{"fall", func(t *builder) {
			begin(t, "a", 1, 2, 10)
			abort(t, "a", 3, 4)
			begin(t, "b", 5, 6, 9)
			abort(t, "b", 7, 8)
		}, []string{"fences"}},
		{"stay", func(t *builder) {
			begin(t, "a", 1, 2, 10)
			abort(t, "a", 3, 4)
			begin(t, "b", 5, 6, 10)
			abort(t, "b", 7, 8)
		}, []string{"fences"}},
		{"none of a lock that has them", func(t *builder) {
			t.grant(1, "k", "a", 1, 2, 10)
			t.release("a", 3, 4)
			t.grant(1, "k", "b", 5, 6, 0)
			t.release("b", 7, 8)
		}, []string{"fences"}},
		{"none of a lock that has none, beside one that has them", func(t *builder) {
			t.grant(1, "k", "a", 1, 2, 10)
			t.release("a", 3, 4)
			t.grant(1, "l", "b", 5, 6, 0)
			t.release("b", 7, 8)
		}, nil},
		{"none of any lock", func(t *builder) {
			t.grant(1, "k", "a", 1, 2, 0)
			t.release("a", 3, 4)
		}, []string{"fences"}},
		{"vanish", func(t *builder) {
			begin(t, "a", 1, 2, 10)
			abort(t, "a", 3, 4)
			begin(t, "b", 5, 6, 0)
			abort(t, "b", 7, 8)
		}, []string{"fences"}},
		{"fall below one long ago", func(t *builder) {
			begin(t, "a", 1, 2, 10)
			abort(t, "a", 3, 4)
			begin(t, "b", 5, 6, 13)
			abort(t, "b", 7, 8)
			begin(t, "c", 9, 10, 12)
			abort(t, "c", 11, 12)
		}, []string{"fences"}},
		{"are of calls that overlap", func(t *builder) {
			begin(t, "b", 2, 5, 9)
			abort(t, "b", 6, 7)
			begin(t, "a", 1, 10, 10)
			abort(t, "a", 11, 12)
		}, nil},
		{"of a stale lease that used up its block", func(t *builder) {
			t.loseData(100, 200)
			begin(t, "a", 1, 2, 10)
			abort(t, "a", 30, 40)
			begin(t, "b", 300, 310, 50)
			abort(t, "b", 320, 330)
			begin(t, "c", 340, 350, 11).Episode = "a"
			abort(t, "c", 351, 352)
		}, nil},
		{"of a stale lease that used its block twice", func(t *builder) {
			t.loseData(100, 200)
			begin(t, "a", 1, 2, 10)
			abort(t, "a", 30, 40)
			begin(t, "b", 300, 310, 50)
			abort(t, "b", 320, 330)
			begin(t, "c", 340, 350, 10).Episode = "a"
			abort(t, "c", 351, 352)
		}, []string{"fences"}},
		{"after a loss below those of a stale lease", func(t *builder) {
			t.loseData(100, 200)
			begin(t, "a", 1, 2, 10)
			abort(t, "a", 30, 40)
			begin(t, "c", 300, 310, 11).Episode = "a"
			abort(t, "c", 311, 312)
			begin(t, "b", 340, 350, 11)
			abort(t, "b", 370, 380)
		}, []string{"fences"}},
	})
}
