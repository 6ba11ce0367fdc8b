package httpattempt

import (
	"context"
	"net/http"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/record"
)

// An Exchange is one request and its answer: the stored answer, or the answer that the
// handler will give. Only the goroutine of the request may use it.
type Exchange struct {
	attempt  *core.Attempt
	filter   record.Filter
	stored   func(status int) bool
	answer   record.Answer // if replayed
	replayed bool

	recorder *Recorder
	implied  int  // the status of an answer that the framework sends itself
	failed   bool // the handler has left the answer to outer middlewares
	bypassed bool // the answer was not sent through the recorder
}

// Replayed reports whether an earlier attempt has an answer. Then the adapter calls Replay,
// and otherwise Run.
func (x *Exchange) Replayed() bool { return x.replayed }

// Run runs the handler of a request on a Recorder, with the context of the attempt. Then it
// ends the attempt, and sends the recorded answer to w.
//
// If the handler panics or ends its goroutine, the recorded answer is dropped: w and its
// header are as before. The attempt is aborted. Exception: the attempt is interrupted if
// the handler has written a status that is stored, or has decided core.StoreAnswer or
// core.Uncertain. core.DropAnswer aborts it in any case.
func (x *Exchange) Run(w http.ResponseWriter, r *http.Request, handler func(w *Recorder, r *http.Request)) {
	leased := x.attempt.Lease().Context()
	detached := context.WithoutCancel(r.Context()) // the attempt has to end if the client disconnects
	x.recorder = newRecorder(w, x.filter, x.attempt.MaxRecord())
	returned, ended := false, false
	defer func() {
		if !ended {
			x.endAbnormally(detached, returned)
		}
	}()
	handler(x.recorder, r.WithContext(leased)) //nolint:contextcheck // derived from the request's by Begin
	returned = true
	x.recorder.close()
	x.end(detached, leased.Err() != nil)
	ended = true
	x.recorder.send()
}

// Imply sets the status of an answer that the framework sends after the handler, if the
// handler has written nothing. The adapter ensures that the framework sends it.
func (x *Exchange) Imply(status int) { x.implied = status }

// Fail reports that the handler has failed, and that an outer middleware will answer. If
// the handler has answered, Fail does nothing.
func (x *Exchange) Fail() { x.failed = !x.recorder.answered() }

// Bypass reports that the handler has answered on the connection without the Recorder.
func (x *Exchange) Bypass() { x.bypassed = true }

// end ends the attempt by the handler's decision and answer. The answer is sent even if
// Redis does not store it: the Locker's observer receives that error. cut means that the
// handler's context had ended before the handler returned.
func (x *Exchange) end(ctx context.Context, cut bool) {
	answer, replayable := x.recorder.result(x.implied)
	decision := x.attempt.Decision()
	switch {
	case decision == core.Uncertain, decision == core.Undecided && cut && (x.hasNoOutcome() || x.failed):
		_ = x.attempt.Interrupt(ctx)
	case decision == core.DropAnswer, decision == core.Undecided && !x.stores(answer.Status):
		_ = x.attempt.Abort(ctx)
	case !replayable || x.failed || x.bypassed:
		_ = x.attempt.Seal(ctx)
	default:
		_ = x.attempt.Commit(ctx, record.Encode(nil, answer))
	}
}

// hasNoOutcome reports whether the handler has returned without an answer. If its context
// has ended, that does not mean success.
func (x *Exchange) hasNoOutcome() bool {
	return x.implied == 0 && !x.bypassed && !x.recorder.answered()
}

// stores reports whether an answer of the status is stored, if the handler has decided
// nothing.
func (x *Exchange) stores(status int) bool {
	switch {
	case x.failed:
		return false
	case x.bypassed || x.recorder.hijacked:
		return true // the status is unknown
	default:
		return x.stored(status)
	}
}

// endAbnormally ends the attempt of a handler that has not returned, or whose status is not
// known to be stored because Stored has panicked.
func (x *Exchange) endAbnormally(ctx context.Context, returned bool) {
	x.recorder.close()
	end := x.attempt.Interrupt // stays if Stored panics now
	defer func() { _ = end(ctx) }()
	if !returned && x.failedWithoutEffect() {
		end = x.attempt.Abort
	}
}

// failedWithoutEffect reports whether a copy may run after a handler that has not returned.
// A handler that has written a stored status may have had its effect: a reverse proxy
// panics in the middle of a success. The same applies if the handler has decided to store
// its answer.
func (x *Exchange) failedWithoutEffect() bool {
	switch x.attempt.Decision() {
	case core.DropAnswer:
		return true
	case core.StoreAnswer, core.Uncertain:
		return false
	default:
		answer, _ := x.recorder.result(0)
		return !x.bypassed && !x.recorder.answered() || !x.stores(answer.Status)
	}
}
