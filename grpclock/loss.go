package grpclock

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
)

// isLoss reports whether an error says that the lease of a handler has ended. A refusal does not.
func isLoss(err error) bool {
	outcome, _ := core.RefusalOf(err)
	return outcome.Code == "lease_lost"
}

// lossOf returns the error of a handler for the client, and whether the handler has lost its lease.
// ctx is the context of that lease. If the error has no status of its own, and says that the lease
// has ended, or the context because of that, the status is that of core.ErrLost. This is no
// refusal: the call ran.
func lossOf(ctx context.Context, err error) (sent error, lost bool) {
	if err == nil || statusIn(err) != nil {
		return err, false
	}
	if cause := context.Cause(ctx); isContextEnd(err) && isLoss(cause) {
		err = errors.Join(err, cause)
	}
	if isLoss(err) {
		return newRefusal(StatusOf(core.ErrLost), err), true
	}
	return err, false
}

// isTimeout reports whether an error of a handler says that the time of the call, of its lease,
// or of a connection was over, also below a status that an interceptor made of it. So the call
// may have taken effect.
func isTimeout(err error) bool {
	return isContextEnd(err) || isLoss(err) || hasEnded(err)
}

// isContextEnd reports whether an error says that a context has ended.
func isContextEnd(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// hasEnded reports whether an error contains the status of a call whose time was over, or an error
// whose method Timeout reports true.
func hasEnded(err error) bool {
	if network, is := err.(interface{ Timeout() bool }); is && network.Timeout() {
		return true
	}
	if own, is := err.(interface{ GRPCStatus() *status.Status }); is {
		if code := own.GRPCStatus().Code(); code == codes.DeadlineExceeded || code == codes.Canceled {
			return true
		}
	}
	switch err := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() error }:
		return hasEnded(err.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), hasEnded)
	}
	return false
}
