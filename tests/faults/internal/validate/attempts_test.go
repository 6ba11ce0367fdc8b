package validate

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

const (
	reject = history.Reject
	rerun  = history.Rerun
)

func TestAttempts(t *testing.T) {
	t.Parallel()
	begin := func(t *builder, process int, from, to int64, outcome history.Outcome, policy history.Policy) {
		t.call(process, history.Begin, "p", from, to, outcome).Policy = policy
	}
	abort := func(t *builder, lease string, from, to int64, outcome history.Outcome) {
		t.end(history.Abort, lease, from, to, outcome).ReliedUntil = from * ms
	}
	runCases(t, []testCase{
		{"run, answered, replayed", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.commit("a", "x", 10, 20, history.Done)
			t.replay(2, "p", "x", 3, 15)
			t.replay(2, "p", "x", 23, 25)
		}, nil},
		{"replayed before there was an answer", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.replay(2, "p", "x", 3, 9)
			t.commit("a", "x", 10, 20, history.Done)
		}, []string{"attempts"}},
		{"another answer", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.commit("a", "x", 10, 20, history.Done)
			t.replay(2, "p", "y", 23, 25)
		}, []string{"attempts"}},
		{"run after the answer", func(t *builder) {
			t.disrupt("cut", 1, 100)
			t.begin(1, "p", "a", 1, 2, 1, rerun)
			t.commit("a", "x", 10, 20, history.Done)
			t.begin(2, "p", "b", 11, 25, 2, rerun)
			t.commit("b", "y", 30, 40, history.Lost)
		}, []string{"attempts"}},
		{"two answers", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, rerun)
			t.leaseEnd("a", 501)
			t.begin(2, "p", "b", 502, 503, 2, rerun)
			t.commit("a", "x", 510, 520, history.Done).ReliedUntil = 501 * ms
			t.commit("b", "y", 530, 540, history.Done)
		}, []string{"attempts"}},
		{"an answer whose reply was lost, replayed", func(t *builder) {
			t.disrupt("cut", 10, 30)
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.commit("a", "x", 10, 20, history.Unavailable)
			t.replay(2, "p", "x", 23, 25)
		}, nil},
		{"an answer that goes on, replayed in its process only", func(t *builder) {
			t.disrupt("cut", 10, 700)
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.commit("a", "x", 10, 20, history.Unavailable)
			t.replay(1, "p", "x", 23, 25)
			begin(t, 2, 600, 601, history.Interrupted, reject)
			t.replay(2, "p", "x", 710, 720)
		}, nil},
		{"run beside an answer that goes on, after a loss of data", func(t *builder) {
			t.disrupt("away", 5, 50)
			t.loseData(5, 50)
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.commit("a", "x", 10, 20, history.Unavailable)
			t.begin(1, "p", "b", 60, 61, 1, reject)
			t.commit("b", "y", 70, 80, history.Done)
		}, []string{"attempts"}},
		{"run beside an answer that goes on, after a run elsewhere", func(t *builder) {
			t.disrupt("away", 5, 50)
			t.loseData(5, 50)
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.commit("a", "x", 10, 20, history.Unavailable)
			t.begin(2, "p", "b", 52, 53, 1, reject)
			abort(t, "b", 54, 55, history.Done)
			t.begin(1, "p", "c", 60, 61, 1, reject)
			t.commit("c", "y", 70, 80, history.Done)
		}, nil},
		{"an answer of one who died, replayed, and then not", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, rerun)
			t.commit("a", "x", 10, 0, history.None)
			t.kill(1, 12)
			t.replay(2, "p", "x", 23, 25)
			t.begin(2, "p", "b", 600, 625, 2, rerun)
			t.kill(2, 630)
		}, []string{"attempts"}},
		{"an answer that was refused, replayed", func(t *builder) {
			t.disrupt("cut", 1, 100)
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.commit("a", "x", 10, 20, history.Lost)
			t.replay(2, "p", "x", 23, 25)
		}, []string{"attempts"}},
		{"aborted, and run anew", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, reject)
			abort(t, "a", 10, 20, history.Done)
			t.begin(2, "p", "b", 11, 25, 1, reject)
			t.commit("b", "y", 30, 40, history.Done)
		}, nil},
		{"run before an abort", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.begin(2, "p", "b", 3, 9, 1, reject)
			abort(t, "a", 10, 20, history.Done)
			t.lease("a").ValidUntil = 4 * ms
			t.Ops[2].ReliedUntil, t.Ops[2].ValidUntil = 4*ms, 4*ms
			t.commit("b", "y", 30, 40, history.Done)
		}, []string{"attempts"}},
		{"an abort whose reply was lost, and run anew", func(t *builder) {
			t.disrupt("cut", 10, 30)
			t.begin(1, "p", "a", 1, 2, 1, reject)
			abort(t, "a", 10, 20, history.Unavailable)
			t.begin(2, "p", "b", 11, 25, 1, reject)
			t.commit("b", "y", 30, 40, history.Done)
		}, nil},
		{"died, and refused", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.kill(1, 10)
			begin(t, 2, 600, 601, history.Interrupted, reject)
		}, nil},
		{"interrupted, and refused", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.end(history.Release, "a", 10, 11, history.Done)
			begin(t, 2, 20, 21, history.Interrupted, reject)
		}, nil},
		{"interrupted, and run again", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, rerun)
			t.end(history.Release, "a", 10, 11, history.Done)
			t.begin(2, "p", "b", 20, 21, 2, rerun)
			t.commit("b", "x", 30, 31, history.Done)
		}, nil},
		{"interrupted, and run as if nothing had been", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, rerun)
			t.end(history.Release, "a", 10, 11, history.Done)
			t.begin(2, "p", "b", 20, 21, 1, rerun)
			t.commit("b", "x", 30, 31, history.Done)
		}, []string{"attempts"}},
		{"refused before it can have died", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, reject)
			begin(t, 2, 20, 30, history.Interrupted, reject)
			t.commit("a", "y", 40, 41, history.Done)
		}, []string{"attempts", "errors"}},
		{"refused, although no attempt began", func(t *builder) {
			begin(t, 2, 600, 601, history.Interrupted, reject)
		}, []string{"attempts", "errors"}},
		{"refused, since one that never returned may have begun", func(t *builder) {
			begin(t, 1, 1, 0, history.None, reject)
			t.kill(1, 10)
			begin(t, 2, 600, 601, history.Interrupted, reject)
		}, nil},
		{"refused after the answer", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.commit("a", "x", 10, 20, history.Done)
			begin(t, 2, 600, 601, history.Interrupted, reject)
		}, []string{"attempts", "errors"}},
		{"refused under the policy to run again", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, rerun)
			t.kill(1, 10)
			begin(t, 2, 600, 601, history.Interrupted, rerun)
		}, []string{"attempts"}},
		{"died, and run again under the policy to reject", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.kill(1, 10)
			t.begin(2, "p", "b", 600, 601, 2, reject)
			t.kill(2, 610)
		}, []string{"attempts"}},
		{"died, and run again, counted", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, rerun)
			t.kill(1, 10)
			t.begin(2, "p", "b", 600, 601, 2, rerun)
			t.kill(2, 610)
			t.begin(3, "p", "c", 1200, 1201, 3, rerun)
			t.commit("c", "x", 1300, 1301, history.Done)
		}, nil},
		{"died, and run again before it can have died", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, rerun)
			t.kill(1, 10)
			t.begin(2, "p", "b", 400, 401, 2, rerun)
			t.kill(2, 610)
		}, []string{"attempts"}},
		{"died, and run again, not counted", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, rerun)
			t.kill(1, 10)
			t.begin(2, "p", "b", 600, 601, 1, rerun)
			t.kill(2, 610)
		}, []string{"attempts"}},
		{"died, and run again, counted too far", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, rerun)
			t.kill(1, 10)
			t.begin(2, "p", "b", 600, 601, 3, rerun)
			t.kill(2, 610)
		}, []string{"attempts"}},
		{"died, and run again, counted with one that never returned", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, rerun)
			begin(t, 3, 5, 0, history.None, rerun)
			t.kill(1, 10)
			t.kill(3, 10)
			t.begin(2, "p", "b", 600, 601, 3, rerun)
			t.kill(2, 610)
		}, nil},
		{"died, aborted after that, and run again as the second", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, rerun)
			t.kill(1, 10)
			t.begin(2, "p", "b", 600, 601, 2, rerun)
			abort(t, "b", 610, 620, history.Done)
			t.begin(3, "p", "c", 630, 640, 2, rerun)
			t.commit("c", "x", 650, 651, history.Done)
		}, nil},
		{"died, aborted after that, and run again as the first", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, rerun)
			t.kill(1, 10)
			t.begin(2, "p", "b", 600, 601, 2, rerun)
			abort(t, "b", 610, 620, history.Done)
			t.begin(3, "p", "c", 630, 640, 1, rerun)
			t.commit("c", "x", 650, 651, history.Done)
		}, []string{"attempts"}},
		{"lost its lease, and committed, since no attempt began", func(t *builder) {
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.leaseEnd("a", 501)
			begin(t, 2, 600, 601, history.Interrupted, reject)
			t.commit("a", "x", 650, 651, history.Done).ReliedUntil = 501 * ms
			t.replay(2, "p", "x", 660, 661)
		}, nil},
	})
}

func TestAttemptMayRunAgainAfterDataLoss(t *testing.T) {
	t.Parallel()
	runCases(t, []testCase{
		{"run again after a loss", func(t *builder) {
			t.loseData(100, 200)
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.commit("a", "x", 10, 20, history.Done)
			t.begin(2, "p", "b", 300, 301, 1, reject)
			t.commit("b", "y", 310, 320, history.Done)
			t.replay(1, "p", "y", 330, 331)
		}, nil},
		{"run twice after a loss", func(t *builder) {
			t.disrupt("cut", 301, 400)
			t.loseData(100, 200)
			t.begin(2, "p", "b", 300, 301, 1, reject)
			t.commit("b", "y", 310, 320, history.Done)
			t.begin(1, "p", "c", 330, 331, 1, reject)
			t.commit("c", "z", 340, 350, history.Lost)
		}, []string{"attempts", "errors"}},
		{"run again after a loss of another key", func(t *builder) {
			t.loseData(100, 200, "k")
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.commit("a", "x", 10, 20, history.Done)
			t.begin(2, "p", "b", 300, 301, 1, reject)
			t.commit("b", "y", 310, 320, history.Done)
		}, []string{"attempts", "errors"}},
		{"run again after a loss of its key", func(t *builder) {
			t.loseData(100, 200, "k", "p")
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.commit("a", "x", 10, 20, history.Done)
			t.begin(2, "p", "b", 300, 301, 1, reject)
			t.commit("b", "y", 310, 320, history.Done)
		}, nil},
		{"run twice before a loss", func(t *builder) {
			t.disrupt("cut", 301, 400)
			t.loseData(500, 600)
			t.begin(2, "p", "b", 300, 301, 1, reject)
			t.commit("b", "y", 310, 320, history.Done)
			t.begin(1, "p", "c", 330, 331, 1, reject)
			t.commit("c", "z", 340, 350, history.Lost)
		}, []string{"attempts", "errors"}},
		{"the answer of a stale attempt", func(t *builder) {
			t.loseData(100, 200)
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.begin(2, "p", "b", 300, 301, 1, reject)
			t.end(history.Abort, "b", 310, 320, history.Done)
			t.commit("a", "x", 310, 350, history.Done)
			t.replay(2, "p", "x", 330, 331)
			t.replay(2, "p", "x", 340, 341)
		}, nil},
		{"two answers after a loss", func(t *builder) {
			t.loseData(100, 200)
			t.begin(1, "p", "a", 1, 2, 1, reject)
			t.commit("a", "x", 10, 20, history.Done)
			t.begin(2, "p", "b", 300, 301, 1, reject)
			t.commit("b", "y", 310, 320, history.Done)
			t.replay(2, "p", "x", 340, 341)
		}, []string{"attempts"}},
	})
}
