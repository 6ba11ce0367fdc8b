package validate

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// fastLease adds a lease of a client at full speed. Process p has only client p.
func (t *builder) fastLease(process int, key string, from, to, fence int64) {
	t.FastLeases = append(t.FastLeases, history.FastLease{Process: process, Client: process, Key: key, Call: from * ms, Return: to * ms, Fence: fence})
}

func TestNumbersAtFullSpeed(t *testing.T) {
	t.Parallel()
	bad := []string{"fences"}
	runCases(t, []testCase{
		{"rise", func(t *builder) {
			t.fastLease(1, "k", 1, 2, 10)
			t.fastLease(2, "k", 3, 4, 11)
		}, nil},
		{"fall", func(t *builder) {
			t.fastLease(1, "k", 1, 2, 10)
			t.fastLease(2, "k", 3, 4, 9)
		}, bad},
		{"stay", func(t *builder) {
			t.fastLease(1, "k", 1, 2, 10)
			t.fastLease(1, "k", 3, 4, 10)
		}, bad},
		{"fall below one of long ago", func(t *builder) {
			t.fastLease(1, "k", 1, 2, 10)
			t.fastLease(1, "k", 3, 4, 13)
			t.fastLease(1, "k", 5, 6, 12)
		}, bad},
		{"fall in reports that come out of order", func(t *builder) {
			t.fastLease(2, "k", 3, 4, 9)
			t.fastLease(1, "k", 1, 2, 10)
		}, bad},
		{"of calls that overlap", func(t *builder) {
			t.fastLease(1, "k", 1, 4, 10)
			t.fastLease(2, "k", 3, 5, 9)
		}, nil},
		{"of two keys", func(t *builder) {
			t.fastLease(1, "k", 1, 2, 10)
			t.fastLease(1, "l", 3, 4, 9)
		}, nil},
		{"of a lock that has none", func(t *builder) { t.fastLease(1, "k", 1, 2, 0) }, bad},
		{"of a counter that is ahead of the clock", func(t *builder) {
			t.AheadCounters = append(t.AheadCounters, history.AheadCounter{Key: "reqlock:k", At: ms, By: 1000})
		}, bad},
	})
}

func TestNumbersThatFallAreOneFinding(t *testing.T) {
	t.Parallel()
	found := All(build(func(t *builder) {
		t.fastLease(1, "k", 1, 2, 10)
		t.fastLease(1, "k", 3, 4, 8)
		t.fastLease(1, "k", 5, 6, 9)
	}))
	if len(found) != 1 {
		t.Errorf("%d violations: %v", len(found), found)
	}
}

func TestTooManyGoroutinesAreFound(t *testing.T) {
	t.Parallel()
	for goroutines, want := range map[int][]string{mostGoroutines: nil, mostGoroutines + 1: {"goroutines"}} {
		runCases(t, []testCase{{"of a process", func(t *builder) {
			t.Sizes = []history.Size{{Process: 1, Goroutines: goroutines, At: ms}}
		}, want}})
	}
}
