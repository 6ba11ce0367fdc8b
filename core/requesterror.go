package core

import "errors"

// A requestError is the error of reading an idempotent request. It has the text of that error.
type requestError struct{ err error }

func (e *requestError) Error() string { return e.err.Error() }

func (e *requestError) Unwrap() error { return e.err }

// asAttemptError converts an error of reading an idempotent request, for the text of its refusal.
func asAttemptError(err error) error { return &requestError{err} }

// isOfAttempt reports whether an error refuses an idempotent request.
func isOfAttempt(err error) bool {
	var read *requestError
	var detail *Error
	return errors.As(err, &read) || errors.As(err, &detail) && detail.attempt
}
