package echolock

import (
	"context"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/adapter"
)

// answerLoss returns the error for a request whose handler has returned err. If the handler has
// given no answer because the lock was lost, it is the one that WriteError makes of the loss:
// Echo would send an empty 200.
//
// The handler has the server's own writer. So an answer counts only if it was given by
// c.Response(), the one before the handler or another one, or to a WebSocket. Behind an
// Idempotent, that one answers.
func answerLoss(c echo.Context, response *echo.Response, err error, entry adapter.Entry) error {
	loss := lossOf(entry.Context(), err)
	switch {
	case loss == nil, response.Committed, c.Response().Committed, c.IsWebSocket():
		return err
	case entry.IsInside():
		return loss
	}
	return WriteError(c, loss)
}

// lossOf is adapter.LossOf for an error that may have a status of its own.
func lossOf(ctx context.Context, err error) error {
	loss := adapter.LossOf(ctx, err)
	if loss != nil && statusIn(err) != 0 {
		return nil
	}
	return loss
}
