package httpattempt

import (
	"context"
	"net/http"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/record"
)

// An Exchange is one request and its answer: the one that was kept, or the one
// that the handler is about to give. It is for the goroutine of the request.
type Exchange struct {
	attempt  *core.Attempt
	filter   record.Filter
	stored   func(status int) bool
	answer   record.Answer // if replayed
	replayed bool

	recorder *Recorder
	implied  int  // the status of an answer that the framework sends by itself
	failed   bool // the handler has left its answer to those outside
	bypassed bool // the answer went past the recorder
}

// Replayed reports whether there is an answer of an earlier attempt. Then Replay
// is to be called; else Run.
func (x *Exchange) Replayed() bool { return x.replayed }

// Run runs the handler of a request on a Recorder, with the context of the
// attempt. Then it ends the attempt, and sends what is recorded to w.
//
// If the handler panics or ends its goroutine, what is recorded is dropped: w and
// its header are as they were. The attempt is aborted. Exception: it is interrupted
// where the handler has written a status that is stored, or has decided
// core.StoreAnswer or core.Uncertain. core.DropAnswer aborts it in any case.
func (x *Exchange) Run(w http.ResponseWriter, r *http.Request, handler func(w *Recorder, r *http.Request)) {
	leased := x.attempt.Lease().Context()
	detached := context.WithoutCancel(r.Context()) // it ends also if the client has gone
	x.recorder = newRecorder(w, x.filter, x.attempt.MaxRecord())
	returned, ended := false, false
	defer func() {
		if !ended {
			x.breakOff(detached, returned)
		}
	}()
	handler(x.recorder, r.WithContext(leased)) //nolint:contextcheck // derived from the request's by Begin
	returned = true
	x.recorder.close()
	x.end(detached, leased.Err() != nil)
	ended = true
	x.recorder.send()
}

// Imply sets the status of an answer of which the handler has written nothing,
// and that the framework sends when the request is over. The adapter sees to it
// that it does.
func (x *Exchange) Imply(status int) { x.implied = status }

// Fail says that the handler has failed, and has left it to those outside to
// answer. Where it has answered, Fail does nothing.
func (x *Exchange) Fail() { x.failed = !x.recorder.answered() }

// Bypass says that the handler has answered on the connection, past the
// Recorder.
func (x *Exchange) Bypass() { x.bypassed = true }

// end ends the attempt by what the handler has decided and answered. The answer
// stands, whether Redis takes it or not: the Locker's observer hears of that.
// cut says that the handler's context had ended before it returned.
func (x *Exchange) end(ctx context.Context, cut bool) {
	answer, replayable := x.recorder.result(x.implied)
	decision := x.attempt.Decision()
	switch {
	case decision == core.Uncertain, decision == core.Undecided && cut && (x.silent() || x.failed):
		_ = x.attempt.Interrupt(ctx)
	case decision == core.DropAnswer, decision == core.Undecided && !x.stores(answer.Status):
		_ = x.attempt.Abort(ctx)
	case !replayable || x.failed || x.bypassed:
		_ = x.attempt.Seal(ctx)
	default:
		_ = x.attempt.Commit(ctx, record.Encode(nil, answer))
	}
}

// silent reports whether the handler has done nothing that tells a success from
// a failure. If its context has ended, its silence is no success.
func (x *Exchange) silent() bool {
	return x.implied == 0 && !x.failed && !x.bypassed && !x.recorder.answered()
}

// stores reports whether an answer of the status is the one to all retries,
// where the handler has decided nothing.
func (x *Exchange) stores(status int) bool {
	switch {
	case x.failed:
		return false
	case x.bypassed || x.recorder.hijacked:
		return true // nobody knows what it is
	default:
		return x.stored(status)
	}
}

// breakOff ends the attempt of a handler that has not returned, or whose status
// nobody could judge, because Stored has panicked.
func (x *Exchange) breakOff(ctx context.Context, returned bool) {
	x.recorder.close()
	end := x.attempt.Interrupt // also where Stored panics now
	defer func() { _ = end(ctx) }()
	if !returned && x.brokeWithoutSuccess() {
		end = x.attempt.Abort
	}
}

// brokeWithoutSuccess reports whether a copy may run after a handler that has not
// returned. A handler that has written a status which is stored may have taken
// effect before it broke: a reverse proxy panics in the middle of a success. The
// same holds for a handler that has asked for its answer to be stored.
func (x *Exchange) brokeWithoutSuccess() bool {
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
