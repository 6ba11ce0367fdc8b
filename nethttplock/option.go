package nethttplock

import (
	"net/http"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// adapter is the prefix of the panics at registration.
const adapter = registration.Adapter("nethttplock")

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
func Also[F ~func(*http.Request) (K, error), K string | core.RequestKey](keys ...F) Option {
	more := registration.KeysOf[*http.Request](adapter, "Also", keys)
	return option("Also", func(c *config) { c.also = append(c.also, more...) })
}

// WithErrorHandler sets the function that answers requests that do not run:
// WriteError if not set. handle gets the error of core.Enter or Locker.Begin. Use
// core.RefusalOf or errors.Is to find its meaning; its text is not for clients.
// Idempotent calls handle also for a handler that was cut off: see core.Attempt.CutOff.
//
// A request that did not run does not get a success by mistake. If handle writes
// nothing, or panics before it writes, WriteError answers. If handle writes a body
// without a status, the answer has the status of the outcome instead of 200. An
// explicit success status is sent: note that http.ServeContent and similar functions set one.
//
// Behind an Idempotent, an answer of handle with a status of 4xx, or by WriteError, frees
// the key. Any other answer counts as if the handler had given it.
func WithErrorHandler(handle func(w http.ResponseWriter, r *http.Request, err error)) Option {
	adapter.Must(handle != nil, "WithErrorHandler needs a function")
	return option("WithErrorHandler", func(c *config) { c.onError = handle })
}

// config holds what the options set.
type config struct {
	onError    func(http.ResponseWriter, *http.Request, error) // nil means WriteError
	also       []KeyFunc                                       // only for Middleware
	settings   settings                                        // only for Idempotent
	idempotent string                                          // the name of the last option that changed settings
}

// option returns the option of this package with that name.
func option(name string, set func(*config)) Option {
	return registration.NewSetting(adapter, name, set)
}

// refuse answers a request that does not run.
func (c *config) refuse(w http.ResponseWriter, r *http.Request, err error, pass *httpattempt.Pass) {
	if c.onError == nil {
		pass.Refuse(w, err)
		return
	}
	guard := pass.Guard(w, err)
	defer func() { // also when the error handler panics
		guard.Finish()
		pass.Refused(httpattempt.RefusalBy(guard, err))
	}()
	c.onError(guard, r, err)
}
