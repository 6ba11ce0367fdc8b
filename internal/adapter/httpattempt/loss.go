package httpattempt

import (
	"context"
	"errors"
	"slices"

	"github.com/reqlock/reqlock/core"
)

// IsLoss reports whether an error says that the lease of a handler has ended. A refusal does not.
func IsLoss(err error) bool {
	outcome, _ := core.RefusalOf(err)
	return outcome.Code == "lease_lost"
}

// LossOf returns the error that answers for a handler under a lock which has given no answer: its
// lease had ended. ended is the cause with which the context of the lease has ended, or nil, and
// err the error that the handler has left to its framework, or nil. LossOf returns nil if the
// handler was not cut off, or has left an error of its own.
func LossOf(ended, err error) error {
	switch {
	case err != nil && IsLoss(err):
		return err
	case ended != nil && IsLoss(ended) && (err == nil || IsContextEnd(err)):
		return ended
	}
	return nil
}

// isTimeout reports whether an error says that the time of the handler, of its lease, or of a
// connection was over, so that what the handler did may have taken effect.
func isTimeout(err error) bool { return IsContextEnd(err) || IsLoss(err) || hasTimeout(err) }

// hasTimeout reports whether the method Timeout of an error, or of one below, reports true.
func hasTimeout(err error) bool {
	if network, is := err.(interface{ Timeout() bool }); is && network.Timeout() {
		return true
	}
	switch err := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() error }:
		return hasTimeout(err.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), hasTimeout)
	}
	return false
}

// IsContextEnd reports whether an error says that a context has ended.
func IsContextEnd(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
