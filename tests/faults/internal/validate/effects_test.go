package validate

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

func TestEffects(t *testing.T) {
	t.Parallel()
	charge := func(t *builder, lease string, at int64) {
		l := t.lease(lease)
		t.Effects = append(t.Effects, history.Effect{At: at * ms, Process: l.Process, Client: l.Client, Key: l.Key, Number: l.Number, Lease: lease})
	}
	again := func(t *builder) {
		t.begin(1, "p", "a", 1, 2, 1, rerun)
		charge(t, "a", 5)
		t.kill(1, 10)
		t.begin(2, "p", "b", 600, 601, 1, rerun)
		t.kill(2, 610)
	}
	runCases(t, []testCase{
		{"one attempt, one charge", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, reject)
			charge(t, "a", 5)
			t.commit("a", "x", 10, 20, history.Done)
		}, nil},
		{"forgotten", again, []string{"attempts", "effects"}},
		{"forgotten in a loss of data", func(t *builder) {
			t.loseData(100, 200)
			again(t)
		}, nil},
		{"forgotten before a loss of data", func(t *builder) {
			t.loseData(1100, 1200)
			again(t)
		}, []string{"attempts", "effects"}},
		{"aborted by the one who charged", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, rerun)
			charge(t, "a", 5)
			t.end(history.Abort, "a", 6, 7, history.Done)
			t.begin(2, "p", "b", 8, 9, 1, rerun)
			t.kill(2, 610)
		}, nil},
		{"by an attempt that must not run", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, reject)
			charge(t, "a", 5)
			t.Effects[0].Lease = "b"
			t.commit("a", "x", 10, 20, history.Done)
		}, []string{"effects"}},
	})
}
