package httpattempt

import (
	"net/http"
	"reflect"
)

// A refusal is what a Recorder knows of the last refusal by a middleware of reqlock that
// stands inside.
type refusal struct {
	given    bool  // there was one
	status   int   // with which the request is refused; 0 if it is not known
	ours     bool  // reqlock answers it; otherwise a function of the application does
	err      error // that is the refusal, in a framework whose middlewares return errors
	answered bool  // it is the recorded answer
	whole    bool  // so is its body
}

// isGatewayError reports whether a status is that of a proxy that did not reach its service.
func isGatewayError(status int) bool {
	return http.StatusBadGateway <= status && status <= http.StatusGatewayTimeout
}

// isClientError reports whether a status is a 4xx.
func isClientError(status int) bool { return status/100 == http.StatusBadRequest/100 }

// NoteLate records a status that came after the answer had begun. If the answer is a refusal,
// another status shows that something has run after it.
func (r *Recorder) NoteLate(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteLate(status)
}

// noteLate is NoteLate for a caller that holds mu.
func (r *Recorder) noteLate(status int) {
	r.ran = r.ran || r.refusal.answered && status >= http.StatusOK && status != r.status
}

// noteReturned records the error that a handler has returned to its framework. If it is the
// refusal, and nothing is answered yet, the framework answers with the refusal.
func (r *Recorder) noteReturned(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusal.err != nil && !r.hasAnswer() && endsIn(err, r.refusal.err) {
		r.refusal.answered = true
	}
}

// endsIn reports whether err is target, or wraps it and no other error beside it.
func endsIn(err, target error) bool {
	for err != nil {
		if same(err, target) {
			return true
		}
		wrapper, wraps := err.(interface{ Unwrap() error })
		if !wraps {
			return false
		}
		err = wrapper.Unwrap()
	}
	return false
}

// same reports whether two errors are one. Of errors that cannot be compared it compares the
// types.
func same(a, b error) bool {
	if !reflect.ValueOf(b).Comparable() { // == would panic
		return reflect.TypeOf(a) == reflect.TypeOf(b)
	}
	return a == b //nolint:errorlint // the same error, not a wrapped one
}

// endsRefused reports whether the answer of a handler that has returned, which has the
// status, is the refusal of a middleware inside. custom says that the application has chosen
// which failures are uncertain or stored.
//
// A function of the application may have run the request by other means. So its answer is no
// refusal, but counts as the handler's. Exception: it is a 4xx.
//
// A writer in between may keep the answer back, or an error handler may only choose its
// status, so that nothing shows where the answer comes from. Then the refusal counts if it is
// 4xx and the answer has the same status: this status of a handler, too, says that nothing was
// done. Exceptions: the application says otherwise, and 499.
func (r *Recorder) endsRefused(status int, custom bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch refusal := &r.refusal; {
	case !refusal.given:
		return false
	case refusal.answered:
		return refusal.ours || isClientError(status)
	default:
		return !custom && isClientError(status) && status == refusal.status && status != 499
	}
}

// mayHaveRun reports whether the handler may have run behind a middleware of reqlock, or may
// still run there.
func (r *Recorder) mayHaveRun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ran || r.running > 0
}

// wasRefusedLate reports whether a middleware has refused the request after it may have run.
func (r *Recorder) wasRefusedLate() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.late
}

// runsOn reports whether a handler behind a middleware of reqlock still runs, in another
// goroutine.
func (r *Recorder) runsOn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running > 0
}
