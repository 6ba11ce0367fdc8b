package ginlock

import (
	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// adapter is what panics at registration begin with.
const adapter = registration.Adapter("ginlock")

// An Option is a setting of a Middleware or of an Idempotent: one of core's
// options, such as core.WithWait, or one of this package's. Later ones win over
// earlier ones. One that is for the other of the two panics.
type Option interface {
	// ReqlockOption marks the options of reqlock and of its adapters, so that
	// one list takes both. Those of another adapter panic at registration.
	ReqlockOption()
}

// Also locks more keys for the same request, such as both accounts of a
// transfer. All keys are taken, in one order whatever the order of the key
// functions, so that a transfer from a to b and one from b to a do not wait
// for each other; all within one wait. Equal keys are locked once. It is an option
// of Middleware.
func Also(keys ...KeyFunc) Option {
	registration.MustBeKeys(adapter, "Also", keys)
	return option(func(cfg *config) { cfg.also = append(cfg.also, keys...) })
}

// WithErrorHandler sets what answers the requests that do not run; without it,
// WriteError does. handle gets the error as core.Enter or Locker.Begin returned
// it, which is also the last of c.Errors. Ask core.OutcomeOf what it means, or
// errors.Is; its text is not for clients. The chain is aborted already.
//
// A request whose handler did not run never gets a success by accident: if
// handle does nothing, WriteError answers; if it writes a body without a
// status, as c.Writer.Write and c.JSON(-1, ...) do, the status is that of the
// outcome instead of 200, which c.Writer.Status gives until one is set. A
// status alone, set with c.Status, leaves the body to a middleware before the
// lock that renders c.Errors. What a key function has answered by itself stands,
// and handle is not called.
func WithErrorHandler(handle func(c *gin.Context, err error)) Option {
	adapter.Must(handle != nil, "WithErrorHandler needs a function")
	return option(func(cfg *config) { cfg.onError = handle })
}

// config is what options set.
type config struct {
	onError    func(*gin.Context, error) // nil: WriteError
	also       []KeyFunc                 // of Middleware
	settings   settings                  // of Idempotent
	idempotent string                    // an option that has set them
}

// option is a setting of this package.
type option = registration.Setting[config]
