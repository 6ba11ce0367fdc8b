package grpclock

import (
	"cmp"
	"reflect"

	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// A refusal is the status for the client, and its cause for the interceptors outside.
type refusal struct {
	status   *status.Status
	cause    error
	pushback string // the value of pushbackTrailer, or ""
}

// refuse returns the error of a call that does not run, and sets its trailer.
func (c *config) refuse(entry adapter.Entry, call *Call, err error) error {
	refused := c.refusalOf(call, err)
	c.rpc.Refused(entry, refused)
	pushBack(entry, refused)
	return refused
}

// refusalOf returns the refusal of a call because of err. A status that the error handler
// chooses has the trailer of its RetryInfo, or else the one that the refusal would have
// without the error handler.
func (c *config) refusalOf(call *Call, err error) *refusal {
	refused := newRefusal(StatusOf(err), err)
	if c.onError != nil {
		own := c.onError(call, err)
		if chosen := statusBeside(own, err); chosen != nil {
			refused.status, refused.cause = chosen, own
			refused.pushback = cmp.Or(pushbackOf(chosen), refused.pushback)
		}
	}
	return refused
}

// newRefusal returns a refusal with a status.
func newRefusal(s *status.Status, cause error) *refusal {
	return &refusal{status: s, cause: cause, pushback: pushbackOf(s)}
}

// Error returns the text of the status alone.
func (r *refusal) Error() string { return r.status.Err().Error() }

// GRPCStatus returns the status for the client.
func (r *refusal) GRPCStatus() *status.Status { return r.status }

// Unwrap returns the cause, for errors.Is and errors.As.
func (r *refusal) Unwrap() error { return r.cause }

// statusBeside returns the status in the error tree of own, or nil. It does not
// search below err or another error of core: the error handler did not choose a
// status there.
func statusBeside(own, err error) *status.Status {
	if own == nil || reflect.ValueOf(err).Comparable() && own == err { //nolint:errorlint // the same error, not a wrapped one
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
