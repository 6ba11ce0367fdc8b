package ginlock

import (
	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// self is the name of this package in errors.
const self = adapter.Name("ginlock")

// WithErrorHandler sets the function that answers requests that do not run:
// WriteError if not set. handle gets the error of core.Enter or Locker.Begin, which
// is also the last one of c.Errors. Use core.RefusalOf or errors.Is to find its
// meaning; its text is not for clients. The chain is already aborted. Idempotent calls
// handle also for a handler that was cut off: see core.Attempt.CutOff.
//
// A request that did not run does not get a success by mistake. If handle does
// nothing, WriteError answers. If handle writes a body without a status, as
// c.Writer.Write and c.JSON(-1, ...) do, the answer has the status of the outcome
// instead of 200. c.Writer.Status returns it until another one is set. If handle only sets a
// status with c.Status, a middleware before the lock that renders c.Errors writes the
// body. If the function of a core.KeyOf has answered by itself, its answer is kept, and
// handle is not called.
//
// Behind an Idempotent, an answer of handle with a status of 4xx, or by WriteError, frees
// the key. Any other answer counts as if the handler had given it.
func WithErrorHandler(handle func(c *gin.Context, err error)) core.Option {
	return errorHandler.Option(handle)
}

// errorHandler is the setting of WithErrorHandler.
var errorHandler = adapter.NewSetting[handler](self, "WithErrorHandler", adapter.ForAll)

// A handler answers a request that does not run. nil means WriteError.
type handler func(*gin.Context, error)
