package echolock

import (
	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
)

// answerLoss returns the error for a request whose handler has returned err. If the handler has
// given no answer because the lock was lost, it is the one that WriteError makes of the loss:
// Echo would send an empty 200. ended is the cause with which the context of the lease has ended,
// or nil.
//
// The handler has the server's own writer. So an answer counts only if it was given by
// c.Response(), the one before the handler or another one, or to a WebSocket. Behind an
// Idempotent, that one answers.
func answerLoss(ended error, c echo.Context, response *echo.Response, err error, pass *httpattempt.Pass) error {
	loss := lossOf(ended, err)
	switch {
	case loss == nil, response.Committed, c.Response().Committed, c.IsWebSocket():
		return err
	case pass != nil:
		return loss
	}
	return WriteError(c, loss)
}

// lossOf is httpattempt.LossOf for an error that may have a status of its own.
func lossOf(ended, err error) error {
	loss := httpattempt.LossOf(ended, err)
	if loss != nil && statusIn(err) != 0 {
		return nil
	}
	return loss
}
