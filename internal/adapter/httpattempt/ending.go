package httpattempt

import (
	"net/http"

	"github.com/reqlock/reqlock/core"
)

// decide returns how the attempt ends: StoreAnswer, DropAnswer or Uncertain. status is the
// status of the answer, and 0 if there is none. returned is false if the handler panicked or
// ended its goroutine. cut is the cause if the context of the handler had ended before the
// handler did. An answer of a handler that has not returned may lack a part, so endAbnormally
// does not store it.
//
// What decides is, in this order: the handler's decision, Uncertain and Stored.
func (x *Exchange) decide(status int, returned bool, cut error) core.Decision {
	decision := x.attempt.Decision()
	switch {
	case decision != core.Undecided:
		return decision
	case returned && cut != nil && (x.failed || x.hasNoOutcome()):
		return core.Uncertain
	case x.bypassed, x.recorder.hijacked:
		return core.StoreAnswer // the status is not known, and may be a success
	case (!returned || x.failed || status >= http.StatusBadRequest) && x.uncertain(x.failure(status, returned, cut)):
		return core.Uncertain
	case x.failed, status == 0, !x.stored(status):
		return core.DropAnswer
	}
	return core.StoreAnswer
}

// failure returns the Failure for Uncertain.
func (x *Exchange) failure(status int, returned bool, cut error) core.Failure {
	f := core.Failure{Status: status, Panic: !returned, Err: x.err}
	if f.Err == nil {
		f.Err = cut
	}
	return f
}

// hasNoOutcome reports whether the handler has returned without an answer. If its context
// has ended, that does not mean success.
func (x *Exchange) hasNoOutcome() bool {
	return x.implied == 0 && !x.bypassed && !x.recorder.answered()
}

// status returns the status of an answer, or 0 if there is none. The handler has not
// returned, or its answer has the status answered.
func (x *Exchange) status(answered int, returned bool) int {
	switch {
	case x.failed:
		return x.left
	case returned, x.recorder.answered():
		return answered
	}
	return 0
}
