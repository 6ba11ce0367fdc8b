package echolock

import (
	"context"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
)

// answerLoss returns the error for a request whose handler has returned err. If the handler has
// given no answer because the lock was lost, it is the one that WriteError makes of the loss:
// Echo would send an empty 200. ctx is the context of the lease.
//
// The handler has the server's own writer. So an answer counts only if it was given by
// c.Response(), the one before the handler or another one, or to a WebSocket. Behind an Idempotent, that one answers.
func answerLoss(ctx context.Context, c echo.Context, response *echo.Response, err error, pass *httpattempt.Pass) error {
	loss := lossOf(ctx, err)
	switch {
	case loss == nil, response.Committed, c.Response().Committed, c.IsWebSocket():
		return err
	case pass != nil:
		return loss
	}
	return WriteError(c, loss)
}

// lossOf is httpattempt.LossOf for an error that may have a status of its own.
func lossOf(ctx context.Context, err error) error {
	loss := httpattempt.LossOf(ctx, err)
	if loss != nil && statusIn(err) != 0 {
		return nil
	}
	return loss
}
