package validate

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// A phase is the state of the record of a request.
type phase string

const (
	noRecord     phase = "no record"
	running      phase = "runs, or died"
	done         phase = "done"
	unknownPhase phase = "not known" // after a loss of data
)

// An attemptState is the record of a request, and the earliest possible time.
type attemptState struct {
	phase  phase
	lease  string // of the attempt that runs or died; "" if it was aborted after one that died
	number int    // its number
	free   int64  // the earliest time at which its lock may be free without an end
	commit pendingEnd
	abort  pendingEnd
	answer string // when done
	epoch  int
	now    int64
}

// attemptModel returns the model of the record of a request, for Porcupine.
func attemptModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return attemptState{phase: noRecord} },
		Step: func(state, input, _ any) (bool, any) {
			return state.(attemptState).step(input.(*step))
		},
		DescribeOperation: func(input, _ any) string { return input.(*step).String() },
		DescribeState: func(state any) string {
			a := state.(attemptState)
			return fmt.Sprintf("%s %s %d %s", a.phase, a.lease, a.number, a.answer)
		},
		DescribeOperationMetadata: describeStep,
	}
}

// step reports whether a step is possible now, and returns the next state.
func (a attemptState) step(next *step) (bool, any) {
	if next.epoch > a.epoch {
		a = attemptState{phase: unknownPhase, epoch: next.epoch, now: a.now}
	}
	a.now = max(a.now, next.op.Call)
	var ok bool
	switch next.kind {
	case granting:
		ok = a.begin(next)
	case replaying:
		ok = a.replay(next)
	case interrupted:
		ok = a.interrupt(next)
	case committing:
		ok = a.phase == running && a.lease == next.lease
		a.phase, a.answer = done, next.op.Record
	case aborting:
		ok = true // if another attempt has begun, an abort does nothing
		if a.phase == running && a.lease == next.lease {
			a.abortAttempt()
		}
	}
	return ok && a.now <= next.op.Return, a
}

// begin begins an attempt: the first one; one after an attempt that died, with the next
// number, if the policy allows it; or one after an attempt that was aborted, with the same
// number. Attempts that may have begun without a known result count too.
func (a *attemptState) begin(next *step) bool {
	fits := func(number int) bool { return number <= next.number && next.number <= number+next.indeterminate }
	switch a.phase {
	case noRecord:
		if !fits(1) {
			return false
		}
	case done:
		return false
	case running:
		aborted := fits(a.number) && a.abort.isPossible(next.op.Return)
		died := fits(a.number+1) && a.free <= next.op.Return && next.op.Policy != history.Reject
		switch {
		case aborted && died:
			a.now = max(a.now, min(a.abort.from, a.free))
		case aborted:
			a.now = max(a.now, a.abort.from)
		case died:
			a.now = max(a.now, a.free)
		default:
			return false
		}
	}
	*a = attemptState{
		phase: running, lease: next.lease, number: next.number, free: next.free,
		commit: next.commit, abort: next.abort, epoch: a.epoch, now: a.now,
	}
	return true
}

// replay returns an answer that was stored, or that may have been stored without a known
// result.
func (a *attemptState) replay(next *step) bool {
	switch {
	case a.phase == done:
		return a.answer == next.op.Record
	case a.phase == running && a.commit.isPossible(next.op.Return) && a.commit.record == next.op.Record:
		a.now = max(a.now, a.commit.from)
	case a.phase == unknownPhase, next.mayBeStale:
	default:
		return false
	}
	a.phase, a.answer = done, next.op.Record
	return true
}

// interrupt refuses to run after an attempt that died. Only the policy Reject allows that.
func (a *attemptState) interrupt(next *step) bool {
	switch {
	case next.op.Policy == history.Rerun:
		return false
	case a.phase == running && a.free <= next.op.Return:
		a.now = max(a.now, a.free)
		return true
	default:
		return a.phase == unknownPhase || a.phase != done && next.indeterminate > 0
	}
}

// abortAttempt ends the attempt as if it had not begun. An earlier attempt that died stays
// recorded.
func (a *attemptState) abortAttempt() {
	if a.number <= 1 {
		*a = attemptState{phase: noRecord, epoch: a.epoch, now: a.now}
		return
	}
	*a = attemptState{phase: running, number: a.number - 1, epoch: a.epoch, now: a.now}
}
