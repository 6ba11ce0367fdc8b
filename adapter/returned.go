package adapter

import (
	"net/http"
	"reflect"
)

// noteReturned records the error that a handler has returned to its framework, and the status that
// the error asks for, or 0. If the error is a refusal, and nothing is answered yet, the framework
// answers with the refusal. If the error is another one, the answer is no refusal.
func (r *Recorder) noteReturned(err error, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		return
	}
	r.otherError = true
	for i := range r.refusals {
		refusal := &r.refusals[i]
		if refusal.err != nil && endsIn(err, refusal.err) && (status == 0 || status == refusal.status) {
			r.otherError = false
			if !r.hasAnswer() {
				r.returned, r.wrapped = refusal, !same(err, refusal.err)
			}
		}
	}
}

// isReturned reports whether a framework has answered, with the status, for a handler that has
// returned a refusal. An error handler of the framework may make a success of it.
func (r *Recorder) isReturned(status int) bool {
	refusal := r.returned
	switch {
	case refusal == nil, r.wrapped && status != refusal.status:
		return false
	}
	return refusal.ends(status) && (status == 0 || status >= http.StatusBadRequest)
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
	if b != nil && !reflect.ValueOf(b).Comparable() { // == would panic
		return reflect.TypeOf(a) == reflect.TypeOf(b)
	}
	return a == b //nolint:errorlint // the same error, not a wrapped one
}
