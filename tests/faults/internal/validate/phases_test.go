package validate

import "testing"

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
		{"a reader joins a phase that a lagging replica still has", func(t *builder) {
			t.loseData(100, 200)
			reader(t, 1, "a", 80, 85, 10)
			t.release("a", 110, 111)
			reader(t, 1, "b", 120, 121, 11) // a phase that the replica does not have
			t.release("b", 130, 131)
			reader(t, 2, "c", 210, 250, 10)
			t.release("c", 260, 261)
		}, nil},
		{"a reader joins a phase that a lagging replica does not have", func(t *builder) {
			t.loseData(100, 200)
			reader(t, 1, "b", 120, 121, 11)
			t.release("b", 130, 131)
			reader(t, 2, "c", 210, 250, 10)
			t.release("c", 260, 261)
		}, []string{"fences"}},
		{"a reader joins a phase after a later one that was not lost", func(t *builder) {
			t.loseData(100, 200)
			reader(t, 1, "a", 80, 85, 10)
			t.release("a", 110, 111)
			reader(t, 1, "b", 120, 121, 12)
			t.release("b", 130, 131)
			reader(t, 1, "d", 230, 240, 11)
			t.release("d", 241, 242)
			reader(t, 2, "c", 250, 255, 10)
			t.release("c", 260, 261)
		}, []string{"fences", "linearizability"}},
		{"a writer has the number of a phase that a lagging replica still has", func(t *builder) {
			t.loseData(100, 200)
			reader(t, 1, "a", 80, 85, 10)
			t.release("a", 110, 111)
			reader(t, 1, "b", 120, 121, 11)
			t.release("b", 130, 131)
			t.grant(2, "k", "w", 210, 250, 10)
			t.release("w", 260, 261)
		}, []string{"fences", "linearizability"}},
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
