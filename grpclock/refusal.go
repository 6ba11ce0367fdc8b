package grpclock

import (
	"reflect"

	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
)

// A refusal is the status that the client gets, and the error behind it for the
// interceptors in between.
type refusal struct {
	status *status.Status
	cause  error
}

// refuse returns the error to send for a call that does not run.
func (c *config) refuse(call *Call, err error) error {
	if c.onError != nil {
		own := c.onError(call, err)
		if chosen := statusBeside(own, err); chosen != nil {
			return &refusal{chosen, own}
		}
	}
	return &refusal{StatusOf(err), err}
}

// Error returns the text of the status alone.
func (r *refusal) Error() string { return r.status.Err().Error() }

// GRPCStatus returns what the client gets.
func (r *refusal) GRPCStatus() *status.Status { return r.status }

// Unwrap returns the error behind the status, for errors.Is and errors.As.
func (r *refusal) Unwrap() error { return r.cause }

// statusBeside returns the status in the tree of own, or nil. What hangs below
// err, or below another error of core's, was not chosen by who returned own.
func statusBeside(own, err error) *status.Status {
	if own == nil || reflect.ValueOf(err).Comparable() && own == err { //nolint:errorlint // the very error, not what wraps it
		return nil
	}
	switch own := own.(type) { //nolint:errorlint // the tree is walked here
	case *core.Error:
		return nil
	case interface{ GRPCStatus() *status.Status }:
		if isFailure(own.GRPCStatus()) {
			return own.GRPCStatus()
		}
	}
	switch own := own.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return statusBeside(own.Unwrap(), err)
	case interface{ Unwrap() []error }:
		for _, below := range own.Unwrap() {
			if chosen := statusBeside(below, err); chosen != nil {
				return chosen
			}
		}
	}
	return nil
}
