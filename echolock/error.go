package echolock

import (
	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// self is the name of this package in errors.
const self = adapter.Name("echolock")

// WithErrorHandler sets the function that answers requests that do not run: WriteError if
// not set. handle gets the error of core.Enter or Locker.Begin: use core.RefusalOf or
// errors.Is to find its meaning. The middleware returns the error that handle returns, so
// the application's HTTPErrorHandler renders it. Idempotent calls handle also for a handler
// that was cut off: see core.Attempt.CutOff.
//
// A request that did not run does not get a success by mistake. If handle returns err
// itself, or returns nil without an answer, WriteError answers. If handle writes a body
// without a status, the answer has the status of the outcome instead of 200. Writing to
// c.Response().Writer and hijacking are answers as well. If the function of a
// core.KeyOf has answered by itself, its answer is kept, and handle is not called.
//
// Behind an Idempotent, an answer of handle with a status of 4xx, or by WriteError, frees
// the key. Any other answer counts as if the handler had given it.
func WithErrorHandler(handle func(c echo.Context, err error) error) core.Option {
	return errorHandler.Option(handle)
}

// errorHandler is the setting of WithErrorHandler.
var errorHandler = adapter.NewSetting[func(c echo.Context, err error) error](self, "WithErrorHandler", adapter.ForAll)

// errorHandlerOf returns the error handler of a Locker.
func errorHandlerOf(l *core.Locker) func(c echo.Context, err error) error {
	if handle, isSet := errorHandler.Value(l); isSet {
		return handle
	}
	return WriteError
}
