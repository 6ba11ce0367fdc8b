package validate

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

func TestALossHasACause(t *testing.T) {
	t.Parallel()
	// lost builds a lease that is granted at 1000 and lost later.
	lost := func(kind history.Kind, at int64, more func(*builder)) func(*builder) {
		return func(t *builder) {
			if kind == history.Commit {
				t.begin(1, "k", "a", 1000, 1001, 1, reject)
			} else {
				t.grant(1, "k", "a", 1000, 1001, 1)
			}
			more(t)
			t.end(kind, "a", at, at+1, history.Lost).ReliedUntil = min(at, 1000+ttl) * ms
		}
	}
	nothing := func(*builder) {}
	report := []string{"errors"}
	runCases(t, []testCase{
		{"at once", lost(history.LeaseEnd, 1002, nothing), report},
		{"at its end", lost(history.LeaseEnd, 1000+ttl, nothing), report},
		{"at its release", lost(history.Release, 1002, nothing), report},
		{"when it was extended", lost(history.Extend, 1002, nothing), report},
		{"at its commit", lost(history.Commit, 1002, nothing), report},
		{"during a disruption", lost(history.Release, 1200, func(t *builder) { t.disrupt("cut", 1100, 1101) }), nil},
		{"just after a disruption", lost(history.Release, 1200, func(t *builder) { t.disrupt("cut", 700, 1000-ttl/2) }), nil},
		{"long after a disruption", lost(history.Release, 1200, func(t *builder) { t.disrupt("cut", 700, 999-ttl/2) }), report},
		{"before a disruption", lost(history.Release, 1200, func(t *builder) { t.disrupt("cut", 1202, 0) }), report},
		{"with the data", lost(history.Release, 1200, func(t *builder) { t.loseData(1100, 1101, "k") }), nil},
		{"when others lost data before", lost(history.Release, 1200, func(t *builder) { t.loseData(700, 701, "l") }), report},
		{"its process was paused", lost(history.LeaseEnd, 1000+ttl, func(t *builder) { t.pause(1, 1100, 1400) }), nil},
		{"another was paused", lost(history.LeaseEnd, 1000+ttl, func(t *builder) { t.pause(2, 1100, 1400) }), report},
		{"at its end, on a machine that stalled", lost(history.LeaseEnd, 1000+ttl, func(t *builder) { t.disrupt(Stalled, 1300, 1320) }), nil},
		{"early, on a machine that stalled", lost(history.LeaseEnd, 1100, func(t *builder) { t.disrupt(Stalled, 1050, 1070) }), report},
		{"at its end, on a machine that is too slow", lost(history.LeaseEnd, 1000+ttl, func(t *builder) { t.disrupt(Stalled, 10_000, 16_000) }), nil},
		{"early, on a machine that is too slow", lost(history.LeaseEnd, 1100, func(t *builder) { t.disrupt(Stalled, 10_000, 16_000) }), report},
		{"at its end, which is not renewed", lost(history.LeaseEnd, 1000+ttl, func(t *builder) { t.lease("a").Unrenewed = true }), nil},
		{"early, which is not renewed", lost(history.LeaseEnd, 1100, func(t *builder) { t.lease("a").Unrenewed = true }), report},
		{"its context had ended", lost(history.Release, 1200, func(t *builder) {
			told := t.leaseEnd("a", 1100)
			told.Return, told.Outcome = told.Call, history.Deadline
		}), nil},
		{"it had been released", lost(history.Extend, 1200, func(t *builder) { t.release("a", 1100, 1101) }), nil},
	})
}

func TestWaitsEndWhenTheyAreOver(t *testing.T) {
	t.Parallel()
	wait := func(kind history.Kind, outcome history.Outcome, wait, took int64) func(*builder) {
		return func(t *builder) { t.call(1, kind, "k", 1000, 1000+took, outcome).Wait = wait * ms }
	}
	report := []string{"errors"}
	runCases(t, []testCase{
		{"over", wait(history.Lock, history.WaitTimeout, 500, 450), nil},
		{"not over", wait(history.Lock, history.WaitTimeout, 500, 449), report},
		{"of an attempt, over", wait(history.Begin, history.WaitTimeout, 500, 450), nil},
		{"of an attempt, not over", wait(history.Begin, history.WaitTimeout, 500, 449), report},
		{"busy instead", wait(history.Lock, history.Busy, 500, 1), report},
		{"busy instead of for ever", wait(history.Lock, history.Busy, 0, 1), report},
		{"busy instead of an answer", wait(history.Begin, history.Busy, 500, 1), report},
	})
}

func TestWhatIsDoneIsReplayed(t *testing.T) {
	t.Parallel()
	ask := func(outcome history.Outcome, wait int64, more func(*builder)) func(*builder) {
		return func(t *builder) {
			more(t)
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.commit("a", "x", 10, 20, history.Done)
			op := t.call(2, history.Begin, "p", 1000, 1100, outcome)
			op.Policy, op.Wait = reject, wait*ms
		}
	}
	nothing := func(*builder) {}
	cut := func(t *builder) { t.disrupt("cut", 1050, 1060) }
	runCases(t, []testCase{
		{"interrupted", ask(history.Interrupted, 0, cut), []string{"attempts", "errors"}},
		{"after a loss of another key", ask(history.Interrupted, 0, func(t *builder) { t.loseData(500, 501, "k") }), []string{"attempts", "errors"}},
		{"after a loss, though no attempt began since", ask(history.Interrupted, 0, func(t *builder) { t.loseData(500, 501, "p") }), nil},
		{"busy", ask(history.Busy, 100, cut), []string{"errors"}},
		{"not in time", ask(history.WaitTimeout, ttl/4+1, nothing), []string{"errors"}},
		{"not in time, during a disruption", ask(history.WaitTimeout, ttl/4+1, cut), nil},
		{"not in the time of a command", ask(history.WaitTimeout, ttl/4, nothing), nil},
		{"refused", ask(history.Unavailable, 0, nothing), []string{"errors"}},
		{"refused during a disruption", ask(history.Unavailable, 0, cut), nil},
	})
}
