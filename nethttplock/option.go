package nethttplock

import (
	"fmt"
	"net/http"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/httpreply"
)

// An Option is a setting of a Middleware: one of core's options, such as
// core.WithWait, or one of this package's. Later ones win over earlier ones.
type Option interface {
	// ReqlockOption marks the options of reqlock and of its adapters, so that
	// one list takes both. Those of another adapter panic at registration.
	ReqlockOption()
}

// Also locks more keys for the same request, such as both accounts of a
// transfer. All keys are taken, in one order whatever the order of the key
// functions, so that a transfer from a to b and one from b to a do not wait
// for each other; all within one wait. Equal keys are locked once.
func Also(keys ...KeyFunc) Option {
	must(len(keys) > 0, "Also needs a key function")
	for _, key := range keys {
		must(key != nil, "Also got a nil key function")
	}
	return option(func(c *config) { c.keys = append(c.keys, keys...) })
}

// WithErrorHandler sets what answers the requests that do not run; without it,
// WriteError does. handle gets the error as core.Enter returned it. Ask
// core.OutcomeOf what it means, or errors.Is; its text is not for clients.
//
// A request whose handler did not run never gets a success by accident: if
// handle writes nothing, or panics before it does, WriteError answers; if it
// writes a body without a status, the status is that of the outcome instead of
// 200. A success that it writes on purpose passes; mind that http.ServeContent
// and its like do.
func WithErrorHandler(handle func(w http.ResponseWriter, r *http.Request, err error)) Option {
	must(handle != nil, "WithErrorHandler needs a function")
	return option(func(c *config) { c.onError = handle })
}

// config is what options set.
type config struct {
	core    []core.Option
	keys    []KeyFunc
	onError func(http.ResponseWriter, *http.Request, error) // nil: WriteError
}

// option is a setting of this package.
type option func(*config)

// ReqlockOption makes it an Option.
func (option) ReqlockOption() {}

// configOf sorts the options into core's and this package's.
func configOf(opts []Option) *config {
	c := &config{}
	for _, opt := range opts {
		switch opt := opt.(type) {
		case option:
			opt(c)
		case core.Option:
			c.core = append(c.core, opt)
		case nil:
			must(false, "an option is nil")
		default:
			panic(fmt.Sprintf("reqlock: nethttplock: %T is an option of another adapter", opt))
		}
	}
	return c
}

// refuse answers a request that does not run.
func (c *config) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if c.onError == nil {
		httpreply.Write(w, err)
		return
	}
	guard := httpreply.NewGuard(w, err)
	defer guard.Finish() // also when the handler panics
	c.onError(guard, r, err)
}
