package echolock

import (
	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// adapter is what panics at registration begin with.
const adapter = registration.Adapter("echolock")

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
	return option(func(o *options) { o.also = append(o.also, keys...) })
}

// WithErrorHandler sets what answers the requests that do not run; without it,
// WriteError does. It is the ErrorHandler of Config, which says what handle
// gets and may return.
func WithErrorHandler(handle func(c echo.Context, err error) error) Option {
	adapter.Must(handle != nil, "WithErrorHandler needs a function")
	return option(func(o *options) { o.errorHandler = handle })
}

// options are what the options set.
type options struct {
	errorHandler func(c echo.Context, err error) error
	also         []KeyFunc // of Middleware
	settings     settings  // of Idempotent
	idempotent   string    // an option that has set them
}

// option is a setting of this package.
type option = registration.Setting[options]
