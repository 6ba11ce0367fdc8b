package client

import (
	"context"
	"errors"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// outcomeOf returns the outcome of a call with ctx. An unexpected error is Failed.
func outcomeOf(ctx context.Context, err error) history.Outcome {
	if err == nil {
		return history.Done
	}
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return history.Deadline
	}
	for _, known := range []struct {
		err     error
		outcome history.Outcome
	}{
		// Specific errors come before general ones.
		{core.ErrClosed, history.Failed}, // a Locker is closed only after its clients have ended
		{core.ErrLost, history.Lost},
		{core.ErrInterrupted, history.Interrupted},
		{core.ErrUnreplayable, history.Unreplayable},
		{core.ErrMismatch, history.Mismatch},
		{core.ErrUnavailable, history.Unavailable},
		{core.ErrWaitTimeout, history.WaitTimeout},
		{core.ErrBusy, history.Busy},
	} {
		if errors.Is(err, known.err) {
			return known.outcome
		}
	}
	return history.Failed
}
