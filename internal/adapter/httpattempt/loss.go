package httpattempt

import (
	"context"
	"errors"

	"github.com/reqlock/reqlock/core"
)

// IsLoss reports whether an error says that the lease of a handler has ended. A refusal does not.
func IsLoss(err error) bool {
	outcome, _ := core.OutcomeOf(err)
	return outcome.Code == "lease_lost"
}

// LossOf returns the error that answers for a handler under a lock which has given no answer: its
// lease had ended. ctx is the context of the lease, and err the error that the handler has left
// to its framework, or nil. LossOf returns nil if the handler was not cut off, or has left an
// error of its own.
func LossOf(ctx context.Context, err error) error {
	switch {
	case IsLoss(err):
		return err
	case ctx.Err() == nil || err != nil && !isContextEnd(err):
		return nil
	}
	if cause := context.Cause(ctx); IsLoss(cause) {
		return cause
	}
	return nil
}

// isContextEnd reports whether an error says that a context has ended.
func isContextEnd(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// NoteLoss records that the lock of the middleware was lost while the request ran. ctx is the
// context of the lease. If the request ends without an answer, that is no success.
func (p *Pass) NoteLoss(ctx context.Context) {
	if p == nil || LossOf(ctx, nil) == nil {
		return
	}
	p.recorder.mu.Lock()
	defer p.recorder.mu.Unlock()
	p.recorder.lost = true
}

// lostInside reports whether a lock inside was lost while the request ran.
func (r *Recorder) lostInside() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}
