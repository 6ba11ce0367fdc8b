package core

import (
	"context"
	"errors"
	"slices"
	"time"
)

// A Refusal is the answer to a request that did not run, or whose handler lost its lock. It is
// the same on every framework. Its numbers are defined by HTTP (RFC 9110) and by gRPC's codes
// package.
type Refusal struct {
	// Code names the refusal for programs: "busy" or "no_key", for example.
	Code string
	// HTTP is the status code, never a 2xx.
	HTTP int
	// GRPC is the number of the gRPC status code, never 0.
	GRPC uint32
	// Type is the type of a problem document, if WithProblemType is set: it ends in Code.
	Type string
	// RetryAfter is when to retry. It is zero where a retry does not help.
	RetryAfter time.Duration
	// Part names the part of the request that the client has to mend, such as `the header
	// "X-Account"`, if the code is "no_key", "invalid_key" or "body_too_large". It is empty
	// where the client cannot mend it. It contains nothing from the request.
	Part string
	// MaxBody is the largest body in bytes, if the code is "body_too_large" and the error has
	// the limit: see ErrBodyTooLarge.
	MaxBody int64
	// First is the reference of the first request with the key, if WithFirstShown is on: see WithReference. It
	// is "" if the record has none.
	First string
	// Detail is a text for people, in English, of one or two sentences. It names Part and MaxBody, if
	// there are any. It contains neither a key, nor a token, nor the text of an error.
	Detail string
}

// Numbers of gRPC's status codes, copied here so that core does not import gRPC.
const (
	grpcCanceled           = 1
	grpcUnknown            = 2
	grpcInvalidArgument    = 3
	grpcDeadlineExceeded   = 4
	grpcNotFound           = 5
	grpcAlreadyExists      = 6
	grpcResourceExhausted  = 8
	grpcFailedPrecondition = 9
	grpcAborted            = 10
	grpcInternal           = 13
	grpcUnavailable        = 14
)

// statusClientClosedRequest is the status for a client that has disconnected. The number is
// in wide use, but in no standard.
const statusClientClosedRequest = 499

// refusals lists each narrow kind before the wide kind that it wraps.
var refusals = [...]struct {
	kind error
	Refusal
	retry bool
}{
	{ErrWaitTimeout, Refusal{Code: "wait_timeout", HTTP: 409, GRPC: grpcAborted}, true},
	{ErrBusy, Refusal{Code: "busy", HTTP: 409, GRPC: grpcAborted}, true},
	{ErrQueueFull, Refusal{Code: "queue_full", HTTP: 429, GRPC: grpcResourceExhausted}, true},
	{ErrOverloaded, Refusal{Code: "overloaded", HTTP: 503, GRPC: grpcResourceExhausted}, true},
	{ErrNoKey, Refusal{Code: "no_key", HTTP: 400, GRPC: grpcInvalidArgument}, false},
	{ErrInvalidKey, Refusal{Code: "invalid_key", HTTP: 400, GRPC: grpcInvalidArgument}, false},
	{ErrBodyTooLarge, Refusal{Code: "body_too_large", HTTP: 413, GRPC: grpcResourceExhausted}, false},
	{ErrMismatch, Refusal{Code: "mismatch", HTTP: 422, GRPC: grpcFailedPrecondition}, false},
	{ErrOutcomeUnknown, Refusal{Code: "outcome_unknown", HTTP: 409, GRPC: grpcFailedPrecondition}, false},
	{ErrUnreplayable, Refusal{Code: "completed_unreplayable", HTTP: 409, GRPC: grpcAlreadyExists}, false},
	{ErrNotFound, Refusal{Code: "not_found", HTTP: 404, GRPC: grpcNotFound}, false},
	{ErrChanged, Refusal{Code: "changed", HTTP: 409, GRPC: grpcAborted}, false},
	{ErrUpgrade, Refusal{Code: "upgrade", HTTP: 500, GRPC: grpcInternal}, false},
	{ErrHiddenLease, Refusal{Code: "hidden_lease", HTTP: 500, GRPC: grpcInternal}, false},
	{ErrClosed, Refusal{Code: "closing", HTTP: 503, GRPC: grpcUnavailable}, true},
	{ErrUnavailable, Refusal{Code: "unavailable", HTTP: 503, GRPC: grpcUnavailable}, true},
}

// RefusalOf returns the answer to a request that was refused with err, and true if err is an
// error of reqlock. It returns false for nil, for ErrSkip, and for all errors of other packages.
//
//	Code                    HTTP  gRPC                 error
//	busy                    409   ABORTED              ErrBusy; HTTP: see WithBusyStatus
//	wait_timeout            409   ABORTED              ErrWaitTimeout; as above
//	queue_full              429   RESOURCE_EXHAUSTED   ErrQueueFull
//	overloaded              503   RESOURCE_EXHAUSTED   ErrOverloaded
//	no_key                  400   INVALID_ARGUMENT     ErrNoKey
//	invalid_key             400   INVALID_ARGUMENT     ErrInvalidKey
//	body_too_large          413   RESOURCE_EXHAUSTED   ErrBodyTooLarge
//	key_error               500   INTERNAL             another error of a key; HTTP: see KeyOf
//	mismatch                422   FAILED_PRECONDITION  ErrMismatch
//	outcome_unknown         409   FAILED_PRECONDITION  ErrOutcomeUnknown
//	completed_unreplayable  409   ALREADY_EXISTS       ErrUnreplayable
//	not_found               404   NOT_FOUND            ErrNotFound
//	changed                 409   ABORTED              ErrChanged
//	upgrade                 500   INTERNAL             ErrUpgrade
//	hidden_lease            500   INTERNAL             ErrHiddenLease
//	closing                 503   UNAVAILABLE          ErrClosed
//	unavailable             503   UNAVAILABLE          ErrUnavailable
//	deadline                503   DEADLINE_EXCEEDED    the deadline of ctx ended the wait
//	canceled                499   CANCELED             the end of ctx ended the wait
//	lease_lost              500   UNKNOWN              ErrLost and ErrMaxHold: see below
//
// The causes with which the context of a lease ends are no refusals: the handler ran, and may
// have taken effect in part. The code of ErrLost, ErrMaxHold and of an ErrClosed outside of
// an *Error is "lease_lost", also beside a refusal. It has no RetryAfter.
func RefusalOf(err error) (Refusal, bool) {
	r, known := answerTo(err)
	if known {
		r.Detail, r.Type = detailOf(&r, err), typeOf(err, r.Code)
	}
	return r, known
}

// answerTo is RefusalOf without the Detail.
func answerTo(err error) (Refusal, bool) {
	var fromKey *keyError
	if errors.As(err, &fromKey) {
		return Refusal{Code: "key_error", HTTP: statusOf(fromKey.err), GRPC: grpcInternal}, true
	}
	if hasLoss(err) {
		return Refusal{Code: "lease_lost", HTTP: 500, GRPC: grpcUnknown}, true
	}
	var detail *Error
	errors.As(err, &detail)
	if detail != nil && detail.ended != nil {
		if errors.Is(detail.ended, context.DeadlineExceeded) {
			return Refusal{Code: "deadline", HTTP: 503, GRPC: grpcDeadlineExceeded, RetryAfter: retryAfter(detail), First: detail.shownFirst()}, true
		}
		return Refusal{Code: "canceled", HTTP: statusClientClosedRequest, GRPC: grpcCanceled}, true
	}
	for i := range refusals {
		if row := &refusals[i]; errors.Is(err, row.kind) {
			o := row.Refusal
			o.First = detail.shownFirst()
			if set := requestsOf(err); set != nil && set.BusyStatus != 0 && errors.Is(row.kind, ErrBusy) {
				o.HTTP = set.BusyStatus
			}
			if row.retry {
				o.RetryAfter = retryAfter(detail)
			}
			var failed *keyPartError
			if errors.As(err, &failed) {
				o.Part = failed.part
			}
			if row.kind == ErrBodyTooLarge { //nolint:errorlint // this very kind
				o.MaxBody = limitOf(err)
			}
			return o, true
		}
	}
	return Refusal{}, false
}

// typeOf returns the type of the problem document with a code, or "" for about:blank.
func typeOf(err error, code string) string {
	if set := requestsOf(err); set != nil && set.ProblemType != "" {
		return set.ProblemType + code
	}
	return ""
}

// hasLoss reports whether an error contains the cause of a lease's context, and not only in a
// refusal.
func hasLoss(err error) bool {
	if err == ErrLost || err == ErrClosed { //nolint:errorlint // the tree is walked here
		return true
	}
	switch err := err.(type) { //nolint:errorlint // as above
	case *Error:
		return false
	case interface{ Unwrap() error }:
		return hasLoss(err.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), hasLoss)
	}
	return false
}

// retryAfter returns the RetryAfter of the error, or the default if the error has none.
func retryAfter(e *Error) time.Duration {
	if e == nil || e.RetryAfter <= 0 {
		return defaultRetryAfter
	}
	return e.RetryAfter
}

// shownFirst returns the reference of the first request, if the client may see it. It is "" on nil.
func (e *Error) shownFirst() string {
	if e == nil || e.requests == nil || !e.requests.FirstShown {
		return ""
	}
	return e.first
}

// limitOf returns the result of the method MaxBody() int64 of an error, or 0 if there is no
// such method.
func limitOf(err error) int64 {
	var limited interface{ MaxBody() int64 }
	if errors.As(err, &limited) {
		return max(limited.MaxBody(), 0)
	}
	return 0
}

// statusOf returns the result of the method StatusCode() int of an error of a user's key
// function. It returns 500 if there is no such method, or if the result is not an error's
// status.
func statusOf(err error) int {
	var coded interface{ StatusCode() int }
	if errors.As(err, &coded) {
		if status := coded.StatusCode(); status >= 400 && status <= 599 {
			return status
		}
	}
	return 500
}
