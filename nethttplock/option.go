package nethttplock

import (
	"net/http"

	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
	"github.com/reqlock/reqlock/internal/adapter/httpreply"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// adapter is what panics at registration begin with.
const adapter = registration.Adapter("nethttplock")

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
	return option(func(c *config) { c.also = append(c.also, keys...) })
}

// WithErrorHandler sets what answers the requests that do not run; without it,
// WriteError does. handle gets the error as core.Enter or Locker.Begin returned
// it. Ask core.OutcomeOf what it means, or errors.Is; its text is not for
// clients.
//
// A request whose handler did not run never gets a success by accident: if
// handle writes nothing, or panics before it does, WriteError answers; if it
// writes a body without a status, the status is that of the outcome instead of
// 200. A success that it writes on purpose passes; mind that http.ServeContent
// and its like do.
func WithErrorHandler(handle func(w http.ResponseWriter, r *http.Request, err error)) Option {
	adapter.Must(handle != nil, "WithErrorHandler needs a function")
	return option(func(c *config) { c.onError = handle })
}

// config is what options set.
type config struct {
	onError    func(http.ResponseWriter, *http.Request, error) // nil: WriteError
	also       []KeyFunc                                       // of Middleware
	settings   settings                                        // of Idempotent
	idempotent string                                          // an option that has set them
}

// option is a setting of this package.
type option = registration.Setting[config]

// refuse answers a request that does not run.
func (c *config) refuse(w http.ResponseWriter, r *http.Request, err error) {
	httpattempt.Refused(r.Context())
	if c.onError == nil {
		httpreply.Write(w, err)
		return
	}
	guard := httpreply.NewGuard(w, err)
	defer guard.Finish() // also when the handler panics
	c.onError(guard, r, err)
}
