package echolock

import (
	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// adapter is the prefix of the panics at registration.
const adapter = registration.Adapter("echolock")

// An Option is a setting of a Middleware or of an Idempotent: an option of core, such
// as core.WithWait, or an option of this package. A later option replaces an earlier
// one. An option that only the other of the two accepts panics.
type Option interface {
	// ReqlockOption marks the options of reqlock and of its adapters, so that one
	// list can contain both. An option of another adapter panics at registration.
	ReqlockOption()
}

// Also locks more keys for the same request, such as both accounts of a transfer. The
// request holds all keys. They are taken in a fixed order that does not depend on the
// order of the key functions, so a transfer from a to b and a transfer from b to a do
// not deadlock. One wait covers all keys. Equal keys are locked once. Leases
// returns the lease of each key. Also is an option of Middleware. core.Func converts a
// function of your own that stands beside other key functions.
func Also[F ~func(echo.Context) (K, error), K string | core.RequestKey](keys ...F) Option {
	more := registration.KeysOf[echo.Context](adapter, "Also", keys)
	return option("Also", func(o *options) { o.also = append(o.also, more...) })
}

// WithErrorHandler sets the function that answers requests that do not run:
// WriteError if not set. Config.ErrorHandler describes what handle gets and may
// return.
func WithErrorHandler(handle func(c echo.Context, err error) error) Option {
	adapter.Must(handle != nil, "WithErrorHandler needs a function")
	return option("WithErrorHandler", func(o *options) { o.errorHandler = handle })
}

// options holds what the options set.
type options struct {
	errorHandler func(c echo.Context, err error) error
	also         []KeyFunc // only for Middleware
	settings     settings  // only for Idempotent
	idempotent   string    // the name of the last option that changed settings
}

// option returns the option of this package with that name.
func option(name string, set func(*options)) Option {
	return registration.NewSetting(adapter, name, set)
}
