package core

import (
	"context"
	"errors"
	"reflect"

	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/kind"
)

// A requestError is the error of a request with what RefusalOf needs of its middleware. It has the text
// of that error.
type requestError struct {
	err       error
	requests  *bridge.Settings
	isAttempt bool
}

func (e *requestError) Error() string { return e.err.Error() }

func (e *requestError) Unwrap() error { return e.err }

// ofRequest adds what RefusalOf needs to the error of a request, unless it is nil or ErrSkip. The result
// can be compared: an adapter asks whether an error handler has returned the same error.
func (l *Locker) ofRequest(err error, isAttempt bool) error {
	set := &l.settings.requests
	switch {
	case err == nil, errors.Is(err, ErrSkip):
	case isAttempt && !isOfAttempt(err), set.ProblemType != "" && requestsOf(err) == nil, !reflect.ValueOf(err).Comparable():
		return &requestError{err, set, isAttempt}
	}
	return err
}

// withRequests adds what RefusalOf needs to an error that is not in use yet.
func (l *Locker) withRequests(e *Error) *Error {
	e.requests = &l.settings.requests
	return e
}

// inContext adds the settings of the Locker whose lease ctx has to an error that has none. It warns of an
// error that RefusalOf does not know, unless it says that ctx has ended.
func inContext(ctx context.Context, err error) error {
	lease, _ := LeaseFromContext(ctx)
	if lease == nil || err != nil && requestsOf(err) != nil {
		return err
	}
	if _, known := RefusalOf(err); !known && !kind.IsEndOf(ctx, err) {
		lease.locker.warnForeign()
	}
	return lease.locker.ofRequest(err, false)
}

// A foreignError is what warnForeign warns of once.
type foreignError struct{}

// errForeign has no text of the error, which may be from the request.
var errForeign = errors.New("reqlock: a request was answered with 500 (internal), because the error that the program gave is not one of reqlock: " +
	"give WriteError, StatusOf and ErrorOf errors of reqlock only, and answer your own errors yourself")

// warnForeign warns that a request was answered with the code "internal".
func (l *Locker) warnForeign() { l.warn(foreignError{}, errForeign) }

// requestsOf returns the settings of the Locker that has refused a request, or nil.
func requestsOf(err error) *bridge.Settings {
	var read *requestError
	var detail *Error
	switch {
	case errors.As(err, &read):
		return read.requests
	case errors.As(err, &detail):
		return detail.requests
	}
	return nil
}

// isOfAttempt reports whether an error refuses an idempotent request.
func isOfAttempt(err error) bool {
	var read *requestError
	var detail *Error
	return errors.As(err, &read) && read.isAttempt || errors.As(err, &detail) && detail.attempt
}
