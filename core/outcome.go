package core

import (
	"context"
	"errors"
	"time"
)

// An Outcome says how a request that did not run is answered. It is the same
// on every framework. Its numbers are those of HTTP (RFC 9110) and of gRPC's
// codes package.
type Outcome struct {
	// Code names the outcome for programs, as in "busy" or "no_key".
	Code string
	// HTTP is the status code, never a 2xx.
	HTTP int
	// GRPC is the number of the gRPC status code, never 0.
	GRPC uint32
	// RetryAfter is when to try again; zero where that does not help.
	RetryAfter time.Duration
}

// Numbers of gRPC's status codes, written out so that core needs no gRPC.
const (
	grpcCanceled           = 1
	grpcInvalidArgument    = 3
	grpcDeadlineExceeded   = 4
	grpcAlreadyExists      = 6
	grpcResourceExhausted  = 8
	grpcFailedPrecondition = 9
	grpcAborted            = 10
	grpcInternal           = 13
	grpcUnavailable        = 14
)

// statusClientClosedRequest answers a client that is gone; the number is in
// wide use, though in no standard.
const statusClientClosedRequest = 499

// outcomes is the table, narrow kinds before the wide ones that they are.
var outcomes = [...]struct {
	kind error
	Outcome
	retry bool
}{
	{ErrWaitTimeout, Outcome{Code: "wait_timeout", HTTP: 409, GRPC: grpcAborted}, true},
	{ErrBusy, Outcome{Code: "busy", HTTP: 409, GRPC: grpcAborted}, true},
	{ErrQueueFull, Outcome{Code: "queue_full", HTTP: 429, GRPC: grpcResourceExhausted}, true},
	{ErrOverloaded, Outcome{Code: "overloaded", HTTP: 503, GRPC: grpcResourceExhausted}, true},
	{ErrNoKey, Outcome{Code: "no_key", HTTP: 400, GRPC: grpcInvalidArgument}, false},
	{ErrInvalidKey, Outcome{Code: "invalid_key", HTTP: 400, GRPC: grpcInvalidArgument}, false},
	{ErrBodyTooLarge, Outcome{Code: "body_too_large", HTTP: 413, GRPC: grpcResourceExhausted}, false},
	{ErrMismatch, Outcome{Code: "mismatch", HTTP: 422, GRPC: grpcFailedPrecondition}, false},
	{ErrInterrupted, Outcome{Code: "outcome_unknown", HTTP: 409, GRPC: grpcFailedPrecondition}, false},
	{ErrUnreplayable, Outcome{Code: "completed_unreplayable", HTTP: 409, GRPC: grpcAlreadyExists}, false},
	{ErrNoFence, Outcome{Code: "no_fence", HTTP: 500, GRPC: grpcInternal}, false},
	{ErrClosed, Outcome{Code: "closing", HTTP: 503, GRPC: grpcUnavailable}, true},
	{ErrUnavailable, Outcome{Code: "unavailable", HTTP: 503, GRPC: grpcUnavailable}, true},
}

// OutcomeOf returns how a request that met err is answered, and true if err is
// one of reqlock's. It is false for nil, for ErrSkip, for ErrLost (the handler
// ran, its own answer stands) and for errors that are not reqlock's.
func OutcomeOf(err error) (Outcome, bool) {
	var fromKey *keyError
	if errors.As(err, &fromKey) {
		return Outcome{Code: "key_error", HTTP: statusOf(fromKey.err), GRPC: grpcInternal}, true
	}
	var detail *Error
	errors.As(err, &detail)
	if detail != nil && detail.ended != nil {
		if errors.Is(detail.ended, context.DeadlineExceeded) {
			return Outcome{"deadline", 503, grpcDeadlineExceeded, retryAfter(detail)}, true
		}
		return Outcome{Code: "canceled", HTTP: statusClientClosedRequest, GRPC: grpcCanceled}, true
	}
	for i := range outcomes {
		if row := &outcomes[i]; errors.Is(err, row.kind) {
			o := row.Outcome
			if row.retry {
				o.RetryAfter = retryAfter(detail)
			}
			return o, true
		}
	}
	return Outcome{}, false
}

// retryAfter returns the hint of the error, or the default where it has none.
func retryAfter(e *Error) time.Duration {
	if e == nil || e.RetryAfter <= 0 {
		return defaultRetryAfter
	}
	return e.RetryAfter
}

// statusOf returns the HTTP status that an error of a user's key function asks
// for with a method StatusCode() int, or 500. A success is not asked for.
func statusOf(err error) int {
	var coded interface{ StatusCode() int }
	if errors.As(err, &coded) {
		if status := coded.StatusCode(); status >= 400 && status <= 599 {
			return status
		}
	}
	return 500
}
