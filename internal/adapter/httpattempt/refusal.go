package httpattempt

import (
	"net/http"
	"reflect"
)

// A refusal is what a Recorder knows of the last refusal by a middleware of reqlock that
// stands inside.
type refusal struct {
	given    bool        // there was one
	status   int         // with which the request is refused; 0 if it is not known
	ours     bool        // reqlock answers it; otherwise a function of the application does
	err      error       // that is the refusal, in a framework whose middlewares return errors
	rendered func() bool // whether the framework has rendered err as it is; nil if err is nil
	answered bool        // it is the recorded answer, or the handler has returned err
	whole    bool        // it is the recorded answer
	wrapped  bool        // the handler has returned an error that wraps err
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

// noteWrite records that n bytes of body are written, for a caller that holds mu: the refusal as the
// framework has just rendered it, or more than the refusal.
func (r *Recorder) noteWrite(n int) {
	refusal := &r.refusal
	switch {
	case n == 0 || !refusal.given:
	case refusal.whole:
		r.ran = true
	case refusal.rendered != nil && refusal.rendered():
		refusal.whole = true
	}
}

// noteReturned records the error that a handler has returned to its framework, and the status
// that it asks for, or 0. If the error is the refusal, and nothing is answered yet, the framework
// answers with the refusal. If it wraps the refusal, the framework may answer with another one.
func (r *Recorder) noteReturned(err error, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusal.err == nil || err == nil {
		return
	}
	if r.hasAnswer() && (r.status != r.refusal.status || !isClientError(r.status)) {
		return // something else has answered
	}
	r.refusal.answered = r.refusal.answered || same(err, r.refusal.err)
	if r.hasAnswer() {
		return // rendered by a middleware in between
	}
	r.refusal.wrapped = endsIn(err, r.refusal.err)
	if status != 0 && status != r.refusal.status {
		r.refusal.status = 0 // the error asks for another answer
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
// done. Exceptions: the application says otherwise, 499, and a refusal that the framework renders.
func (r *Recorder) endsRefused(status int, custom bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch refusal := &r.refusal; {
	case !refusal.given:
		return false
	case refusal.whole, refusal.wrapped && status == refusal.status,
		refusal.answered && (status == 0 || status >= http.StatusBadRequest): // an error handler may render it as a success
		return refusal.ours || isClientError(status)
	default:
		hidden := refusal.rendered == nil && isClientError(status) && status == refusal.status && status != 499
		return hidden && !custom
	}
}

// mayHaveRun reports whether the handler may have run behind a middleware of reqlock, or still
// runs or waits there.
func (r *Recorder) mayHaveRun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ran || r.inside > 0
}

// runsOn reports whether a request still runs behind a middleware of reqlock, or waits for its
// lock, in another goroutine.
func (r *Recorder) runsOn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inside > 0
}

// wasRefused reports whether a middleware has refused the request, and whether it did so after the
// request may have run.
func (r *Recorder) wasRefused() (given, late bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusal.given, r.late
}

// wasBroken reports whether nobody knows how the request has ended behind a middleware of
// reqlock, whatever the answer is.
func (r *Recorder) wasBroken() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

// wasRefusedAround reports whether the answer, which has the status and was given without the
// Recorder, is the refusal of a middleware inside.
func (r *Recorder) wasRefusedAround(status int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusal.given && r.refusal.ours && status == r.refusal.status
}

// HasLost reports whether a lock inside was lost while the request ran. What is written after that
// is not the handler's answer.
func (r *Recorder) HasLost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}
