package check

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

func TestALossHasACause(t *testing.T) {
	// lost is a lease that is granted at 1000 and lost some time later.
	lost := func(kind history.Kind, at int64, more func(*tale)) func(*tale) {
		return func(t *tale) {
			if kind == history.Commit {
				t.begin(1, "k", "a", 1000, 1001, 1, reject)
			} else {
				t.grant(1, "k", "a", 1000, 1001, 1)
			}
			more(t)
			t.end(kind, "a", at, at+1, history.Lost).Believed = min(at, 1000+ttl) * ms
		}
	}
	nothing := func(*tale) {}
	guilty := []string{"errors"}
	run(t, []testCase{
		{"told at once", lost(history.Told, 1002, nothing), guilty},
		{"told at its end", lost(history.Told, 1000+ttl, nothing), guilty},
		{"at its release", lost(history.Release, 1002, nothing), guilty},
		{"when it was extended", lost(history.Extend, 1002, nothing), guilty},
		{"at its commit", lost(history.Commit, 1002, nothing), guilty},
		{"in trouble", lost(history.Release, 1200, func(t *tale) { t.trouble("cut", 1100, 1101) }), nil},
		{"just after a trouble", lost(history.Release, 1200, func(t *tale) { t.trouble("cut", 700, 1000-ttl/2) }), nil},
		{"long after a trouble", lost(history.Release, 1200, func(t *tale) { t.trouble("cut", 700, 999-ttl/2) }), guilty},
		{"before a trouble", lost(history.Release, 1200, func(t *tale) { t.trouble("cut", 1202, 0) }), guilty},
		{"with the data", lost(history.Release, 1200, func(t *tale) { t.lose(1100, 1101, "k") }), nil},
		{"when others lost data before", lost(history.Release, 1200, func(t *tale) { t.lose(700, 701, "l") }), guilty},
		{"its process stood still", lost(history.Told, 1000+ttl, func(t *tale) { t.stand(1, 1100, 1400) }), nil},
		{"another stood still", lost(history.Told, 1000+ttl, func(t *tale) { t.stand(2, 1100, 1400) }), guilty},
		{"at its end, on a machine that stalled", lost(history.Told, 1000+ttl, func(t *tale) { t.trouble(Stalled, 1300, 1320) }), nil},
		{"early, on a machine that stalled", lost(history.Told, 1100, func(t *tale) { t.trouble(Stalled, 1050, 1070) }), guilty},
		{"at its end, on a machine that is too slow", lost(history.Told, 1000+ttl, func(t *tale) { t.trouble(Stalled, 10_000, 16_000) }), nil},
		{"early, on a machine that is too slow", lost(history.Told, 1100, func(t *tale) { t.trouble(Stalled, 10_000, 16_000) }), guilty},
		{"at its end, which is not renewed", lost(history.Told, 1000+ttl, func(t *tale) { t.lease("a").Unrenewed = true }), nil},
		{"early, which is not renewed", lost(history.Told, 1100, func(t *tale) { t.lease("a").Unrenewed = true }), guilty},
		{"its context had ended", lost(history.Release, 1200, func(t *tale) {
			told := t.told("a", 1100)
			told.Return, told.Outcome = told.Call, history.Deadline
		}), nil},
		{"it had been released", lost(history.Extend, 1200, func(t *tale) { t.release("a", 1100, 1101) }), nil},
	})
}

func TestWaitsEndWhenTheyAreOver(t *testing.T) {
	wait := func(kind history.Kind, outcome history.Outcome, wait, took int64) func(*tale) {
		return func(t *tale) { t.call(1, kind, "k", 1000, 1000+took, outcome).Wait = wait * ms }
	}
	guilty := []string{"errors"}
	run(t, []testCase{
		{"over", wait(history.Lock, history.WaitTimeout, 500, 450), nil},
		{"not over", wait(history.Lock, history.WaitTimeout, 500, 449), guilty},
		{"of an attempt, over", wait(history.Begin, history.WaitTimeout, 500, 450), nil},
		{"of an attempt, not over", wait(history.Begin, history.WaitTimeout, 500, 449), guilty},
		{"busy instead", wait(history.Lock, history.Busy, 500, 1), guilty},
		{"busy instead of for ever", wait(history.Lock, history.Busy, 0, 1), guilty},
		{"busy instead of an answer", wait(history.Begin, history.Busy, 500, 1), guilty},
	})
}

func TestWhatIsDoneIsReplayed(t *testing.T) {
	ask := func(outcome history.Outcome, wait int64, more func(*tale)) func(*tale) {
		return func(t *tale) {
			more(t)
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.commit("a", "x", 10, 20, history.Done)
			op := t.call(2, history.Begin, "p", 1000, 1100, outcome)
			op.Policy, op.Wait = reject, wait*ms
		}
	}
	nothing := func(*tale) {}
	cut := func(t *tale) { t.trouble("cut", 1050, 1060) }
	run(t, []testCase{
		{"interrupted", ask(history.Interrupted, 0, cut), []string{"attempts", "errors"}},
		{"after a loss of another key", ask(history.Interrupted, 0, func(t *tale) { t.lose(500, 501, "k") }), []string{"attempts", "errors"}},
		{"after a loss, though nobody began since", ask(history.Interrupted, 0, func(t *tale) { t.lose(500, 501, "p") }), nil},
		{"busy", ask(history.Busy, 100, cut), []string{"errors"}},
		{"not in time", ask(history.WaitTimeout, 100, nothing), []string{"errors"}},
		{"not in time, in trouble", ask(history.WaitTimeout, 100, cut), nil},
		{"not in a time that is too short", ask(history.WaitTimeout, 50, nothing), nil},
		{"refused", ask(history.Unavailable, 0, nothing), []string{"errors"}},
		{"refused in trouble", ask(history.Unavailable, 0, cut), nil},
	})
}
