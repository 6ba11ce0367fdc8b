package adapter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/answer"
	"github.com/reqlock/reqlock/internal/bridge"
)

// end ends the attempt of a handler that has returned. The answer is sent even if Redis does
// not store it: the Locker's observer receives that error. cut is the cause if the handler's
// context had ended before the handler returned. The error is that of Run.
func (x *Exchange) end(ctx context.Context, cut error) error {
	given, replayable := x.recorder.result(x.implied)
	status := x.status(given.Status, true)
	decision := x.decide(status, true, cut)
	switch decision {
	default:
		x.outer.interrupt()
		_ = x.attempt.Unknown(ctx, x.unknownCause(status, true, cut))
	case core.EndAbort:
		if x.timeout && status == http.StatusServiceUnavailable && !x.recorder.wasEntered() {
			x.entry.mistakes.warn(timeoutInside{})
		}
		_ = x.attempt.Abort(ctx)
	case core.EndDone:
		_ = x.attempt.Done(ctx)
		return nil
	case core.EndCommit:
		if !replayable || x.failed || x.bypassed {
			_ = x.attempt.Done(ctx)
		} else {
			_ = bridge.CommitOwned(ctx, x.attempt, answer.Encode(nil, given))
		}
		return nil
	}
	if x.failed || !x.isCutOff(cut) {
		return nil // there is an answer, or a middleware outside gives it
	}
	return bridge.CutOff(x.attempt, cut, decision == core.EndAbort)
}

// endAbnormally ends the attempt of a handler that has not returned. It also ends the attempt
// if Unknown or Stored has panicked.
func (x *Exchange) endAbnormally(ctx context.Context, returned bool, cut error) {
	if x.recorder == nil {
		_ = x.attempt.Abort(ctx) // the outer writer has panicked, before the handler
		return
	}
	x.recorder.close()
	cause, frees := errDeciderPanicked, false // stay if Unknown or Stored panics now
	defer func() {
		if frees {
			_ = x.attempt.Abort(ctx)
			return
		}
		_ = x.attempt.Unknown(ctx, cause)
	}()
	if returned {
		return
	}
	given, _ := x.recorder.result(0)
	status := x.status(given.Status, false)
	frees = x.decide(status, false, cut) == core.EndAbort
	cause = x.unknownCause(status, false, cut)
}

// decide returns how the attempt ends: EndCommit, EndDone, EndAbort or EndUnknown. status is the
// status of the answer, and 0 if there is none. returned is false if the handler panicked or
// ended its goroutine. cut is the cause if the context of the handler had ended before the
// handler did. An answer of a handler that has not returned may lack a part, so endAbnormally
// does not store it.
//
// What decides is, in this order: the handler's decision, a refusal inside, Unknown and
// Stored.
func (x *Exchange) decide(status int, returned bool, cut error) core.Ending {
	switch decision := core.Ending(bridge.Decision(x.attempt)); decision {
	case core.EndUndecided:
		return x.judge(status, returned, cut)
	case core.EndNoEffect:
		judged := x.judge(status, returned, cut)
		if judged == core.EndUnknown && !x.mayHaveEffect(status, returned) {
			return core.EndAbort
		}
		return judged
	default:
		return decision
	}
}

// judge is decide for a handler whose decision leaves it to the answer.
func (x *Exchange) judge(status int, returned bool, cut error) core.Ending {
	refusal, ran := x.recorder.endsRefused(status, x.custom, x.bypassed)
	fails := !returned || x.failed || status < http.StatusOK || status >= x.leastFailure()
	switch {
	case returned && refusal != nil && ran:
		x.refusedLate = true
		return core.EndUnknown
	case returned && refusal != nil:
		x.refusal = refusal
		return core.EndAbort
	case returned && x.isCutOff(cut):
		return core.EndUnknown
	case x.bypassed, x.recorder.hijacked:
		return core.EndCommit // the status is not known, and may be a success
	case fails && x.isUnknown(x.failure(status, returned, cut)):
		return core.EndUnknown
	case x.failed, status == 0, !x.stored(status), fails && x.body.err() != nil:
		if x.mayHaveEnded(cut) {
			return core.EndUnknown
		}
		return core.EndAbort
	}
	return core.EndCommit
}

// mayHaveEnded reports whether the request may have ended in another way than its answer says,
// which is a failure that frees the key: it runs on, was refused late, was cut off, was sent again,
// or ended unknown inside. Or a middleware inside has refused it, and something else has answered,
// which may have run it by other means.
func (x *Exchange) mayHaveEnded(cut error) bool {
	refused, late := x.recorder.wasRefused()
	x.refusedLate = late || refused && x.unknown == nil
	cutOff := cut != nil || x.recorder.wasBroken() || x.recorder.wasResent()
	return x.recorder.runsOn() || x.refusedLate || cutOff && x.unknown == nil
}

// leastFailure returns the least status that is a failure: after a body that broke off, and after
// a timeout, a redirect may lead to an error.
func (x *Exchange) leastFailure() int {
	if x.timedOut || x.body.err() != nil {
		return http.StatusMultipleChoices
	}
	return http.StatusBadRequest
}

// mayHaveEffect reports whether a handler that has decided EndNoEffect may have taken effect all
// the same: it still runs, its answer was begun to be sent, or it has answered with a status
// that is stored, and then panicked.
func (x *Exchange) mayHaveEffect(status int, returned bool) bool {
	wasSent := x.bypassed || x.recorder.hijacked || x.recorder.IsSent()
	chosen := cmp.Or(status, x.implied)
	return wasSent || x.recorder.runsOn() || !returned && chosen != 0 && x.stored(chosen)
}

// isUnknown calls the function Unknown, or returns its default.
func (x *Exchange) isUnknown(f core.Failure) bool {
	switch {
	case x.unknown != nil:
		return x.unknown(f)
	case f.Panic, f.Status == 0, x.body.err() != nil:
		return true
	case answer.Unknown(f.Status):
		return !x.stored(f.Status)
	}
	return x.timedOut // whatever an error handler made of it
}

// failure returns the Failure for Unknown.
func (x *Exchange) failure(status int, returned bool, cut error) core.Failure {
	f := core.Failure{Status: status, Panic: !returned, Err: x.err}
	if f.Err == nil {
		f.Err = x.body.err()
	}
	if f.Err == nil {
		f.Err = cut
	}
	return f
}

// isCutOff reports whether the handler has returned without an answer, and its context had
// ended, or nobody knows how the request has ended behind a lock inside. So the lack of an answer
// does not mean success.
func (x *Exchange) isCutOff(cut error) bool {
	ended := cut != nil || x.recorder.wasBroken()
	return ended && (x.failed || !x.bypassed && x.isEmpty())
}

// isEmpty reports whether there is no answer but an empty 200, which a middleware inside may have
// made of none.
func (x *Exchange) isEmpty() bool {
	chosen := x.implied != 0 && x.implied != http.StatusOK
	return !chosen && x.recorder.isEmpty()
}

// status returns the status of an answer, or 0 if there is none. The handler has not
// returned, or its answer has the status answered.
func (x *Exchange) status(answered int, returned bool) int {
	switch {
	case x.bypassed:
		return x.around
	case x.failed:
		return x.left
	case returned, x.recorder.answered():
		return answered
	case x.recorder.isHeld():
		return x.implied
	}
	return 0
}

// Causes of an unknown outcome, for core.Attempt.Unknown. They contain nothing from the
// request, and no text of the program's errors.
var (
	errDecidedUnknown  = errors.New("reqlock: the handler decided EndUnknown")
	errPanicked        = errors.New("reqlock: the handler panicked or ended its goroutine")
	errContextEnded    = errors.New("reqlock: the handler gave no answer after its context had ended")
	errRanRefused      = errors.New("reqlock: the request ran, and was refused when it was tried again")
	errRunsOn          = errors.New("reqlock: the request was answered while it still ran in another goroutine")
	errResent          = errors.New("reqlock: the proxy has sent the request more than once")
	errTimedOut        = errors.New("reqlock: a context of the handler had ended")
	errBrokenBody      = errors.New("reqlock: the body of the request broke off")
	errNoStatus        = errors.New("reqlock: the handler failed without a status")
	errDeciderPanicked = errors.New("reqlock: the function of WithUnknown or WithStored panicked")
)

// unknownCause returns why decide returned EndUnknown. Its arguments are those of decide.
func (x *Exchange) unknownCause(status int, returned bool, cut error) error {
	switch {
	case core.Ending(bridge.Decision(x.attempt)) == core.EndUnknown:
		return errDecidedUnknown
	case !returned:
		return errPanicked
	case x.isCutOff(cut):
		return errContextEnded
	case x.refusedLate:
		return errRanRefused
	case x.recorder.runsOn():
		return errRunsOn
	case x.body.err() != nil:
		return errBrokenBody
	case x.recorder.wasResent():
		return errResent
	case x.timedOut, cut != nil:
		return errTimedOut
	case status == 0:
		return errNoStatus
	}
	return fmt.Errorf("reqlock: the handler ended with status %d", status)
}
