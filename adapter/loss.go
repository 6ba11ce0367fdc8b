package adapter

import (
	"context"
	"errors"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

// isLoss reports whether an error says that the lease of a handler has ended. A refusal does not.
func isLoss(err error) bool {
	refusal, _ := core.RefusalOf(err)
	return refusal.Code == "lease_lost"
}

// LossOf returns the error that answers for a handler under a lock which has given no answer: its
// lease had ended. ctx is the context of the handler, and err the error that the handler has left to
// its framework, or nil. status is the one that the error asks for, or 0. LossOf returns nil if the
// handler was not cut off, or has left an error or a status of its own.
func LossOf(ctx context.Context, err error, status int) error {
	ended := context.Cause(ctx)
	switch {
	case status != 0:
		return nil
	case err != nil && isLoss(err):
		return bridge.InContext(ctx, err)
	case ended != nil && isLoss(ended) && (err == nil || isContextEnd(err)):
		return bridge.InContext(ctx, ended)
	}
	return nil
}

// isTimeout reports whether an error says that the time of the handler, of its lease, or of a
// connection was over, so that what the handler did may have taken effect.
func isTimeout(err error) bool { return isContextEnd(err) || isLoss(err) || hasTimeout(err) }

// hasTimeout reports whether the method Timeout of an error, or of one below, reports true.
func hasTimeout(err error) bool {
	return walk(err, func(link error) bool {
		network, is := link.(interface{ Timeout() bool })
		return is && network.Timeout()
	})
}

// isContextEnd reports whether an error says that a context has ended.
func isContextEnd(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
