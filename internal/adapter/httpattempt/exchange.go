package httpattempt

import (
	"context"
	"net/http"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/answer"
	"github.com/reqlock/reqlock/internal/bridge"
)

// An Exchange is one request and its answer: the stored answer, or the answer that the
// handler will give. Only the goroutine of the request may use it.
type Exchange struct {
	attempt  *core.Attempt
	filter   answer.Filter
	unknown  func(core.Failure) bool
	stored   func(status int) bool
	custom   bool          // the application has set unknown or stored
	answer   answer.Answer // if replayed
	replayed bool

	recorder *Recorder
	pass     Pass  // the context of the handler
	outer    *Pass // in an Exchange around this one
	body     body  // of the request
	implied  int   // the status of an answer that the framework sends itself
	failed   bool  // the handler has left the answer to outer middlewares
	left     int   // the status that the handler has left to them, or 0
	err      error // the handler's, for its framework
	timedOut bool  // an error for the framework is that of a timeout
	bypassed bool  // the answer was not sent through the recorder
	around   int   // its status then

	cutOff error // of CutOff

	// Set by decide: the refusal inside with which the request ends, or nil; it was refused, and
	// may have run.
	refusal     *Refusal
	refusedLate bool
}

// Replayed reports whether an earlier attempt has an answer. Then the adapter calls Replay,
// and otherwise Run.
func (x *Exchange) Replayed() bool { return x.replayed }

// Run runs the handler of a request on a Recorder, with the context of the attempt. Then it
// ends the attempt, and sends the recorded answer to w. If CutOff then returns an error, nothing
// was sent.
//
// If the handler panics or ends its goroutine, the recorded answer is dropped: w and its
// header are as before. The panic goes on.
func (x *Exchange) Run(w http.ResponseWriter, r *http.Request, handler func(w *Recorder, r *http.Request)) {
	detached := context.WithoutCancel(r.Context()) // the attempt has to end if the client disconnects
	leased, returned, ended := context.Background(), false, false
	defer func() {
		if !ended {
			x.endAbnormally(detached, returned, context.Cause(leased))
		}
	}()
	leased = x.attempt.Lease().Context()
	x.recorder = newRecorder(w, x.filter, bridge.MaxAnswer(x.attempt))
	x.outer = passOf(r.Context())
	x.pass = Pass{Context: leased, recorder: x.recorder}
	running := r.WithContext(&x.pass) //nolint:contextcheck // derived from the request's by Begin
	running.Body = x.body.watch(r)
	handler(x.recorder, running)
	returned = true
	x.recorder.close()
	x.cutOff = x.end(detached, context.Cause(leased)) //nolint:contextcheck // leased only tells why it ended
	ended = true
	if x.cutOff == nil {
		x.send(r.Context())
	}
}

// CutOff returns the error with which the adapter answers after Run, as with a refusal, or nil:
// the handler has given no answer, because its context had ended. An empty 200 would say that all
// went well. It is nil on nil.
func (x *Exchange) CutOff() error {
	if x == nil {
		return nil
	}
	return x.cutOff
}

// send sends the recorded answer. If that is a refusal, an Exchange around this one learns so.
func (x *Exchange) send(ctx context.Context) {
	if x.refusal == nil {
		x.recorder.send()
		return
	}
	pass := Enter(ctx)
	defer pass.Leave()
	x.recorder.send()
	refusal := *x.refusal
	if x.recorder.status != 0 {
		refusal.Status, refusal.Body = x.recorder.status, append([]byte{}, x.recorder.body...)
	}
	pass.Refused(refusal)
}

// Imply sets the status of an answer that the framework sends after the handler, if the
// handler has written nothing. The adapter ensures that the framework sends it.
func (x *Exchange) Imply(status int) { x.implied = status }

// Fail reports that the handler has failed, and that an outer middleware will answer. status
// is the status that the handler or its error has set, or 0. If the handler has answered,
// Fail does nothing.
func (x *Exchange) Fail(status int) { x.failed, x.left = !x.recorder.answered(), status }

// SetError reports an error that the handler has given to its framework. Of several errors,
// Unknown gets the last one.
func (x *Exchange) SetError(err error) {
	x.err = err
	x.NoteTimeout(err)
}

// Return is SetError for the error that the handler has returned, with which the framework answers
// if nothing else has. status is the one that the error asks for, or 0.
func (x *Exchange) Return(err error, status int) {
	x.SetError(err)
	x.recorder.noteReturned(err, status)
}

// NoteTimeout records whether an error that the framework shows to its middlewares in another way
// is that of a timeout.
func (x *Exchange) NoteTimeout(err error) { x.timedOut = x.timedOut || isTimeout(err) }

// Lose reports that the handler has failed because it, or what it did, has lost a lease. If it has
// answered, Lose does nothing. Otherwise CutOff answers.
func (x *Exchange) Lose() { x.pass.Break() }

// Bypass reports that the handler has answered on the connection without the Recorder, with the
// status.
func (x *Exchange) Bypass(status int) { x.bypassed, x.around = true, status }

// end ends the attempt of a handler that has returned. The answer is sent even if Redis does
// not store it: the Locker's observer receives that error. cut is the cause if the handler's
// context had ended before the handler returned. The error is that of CutOff.
func (x *Exchange) end(ctx context.Context, cut error) error {
	given, replayable := x.recorder.result(x.implied)
	status := x.status(given.Status, true)
	decision := x.decide(status, true, cut)
	switch decision {
	default:
		x.outer.Break()
		_ = x.attempt.Unknown(ctx, x.unknownCause(status, true, cut))
	case core.EndAbort:
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
