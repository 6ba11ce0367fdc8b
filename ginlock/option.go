package ginlock

import (
	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// self is the name of this package in errors.
const self = adapter.Name("ginlock")

// Also locks more keys for the same request, such as both accounts of a transfer. The
// request holds all keys. They are taken in a fixed order that does not depend on the
// order of the key functions, so a transfer from a to b and a transfer from b to a do
// not deadlock. One wait covers all keys. Equal keys are locked once. Leases
// returns the lease of each key. Idempotent refuses this option. core.Func converts a
// function of your own that stands beside other key functions.
func Also[F ~func(*gin.Context) (K, error), K string | core.RequestKey](keys ...F) core.Option {
	return registration.Also[*gin.Context](self, keys)
}

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
// body. If a key function has answered by itself, its answer is kept, and handle is
// not called.
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
