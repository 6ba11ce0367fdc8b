package ginlock

import (
	"fmt"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
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
	return option(func(cfg *config) { cfg.keys = append(cfg.keys, keys...) })
}

// WithErrorHandler sets what answers the requests that do not run; without it,
// WriteError does. handle gets the error as core.Enter returned it, which is
// also the last of c.Errors. Ask core.OutcomeOf what it means, or errors.Is;
// its text is not for clients. The chain is aborted already.
//
// A request whose handler did not run never gets a success by accident: if
// handle does nothing, WriteError answers; if it writes a body without a
// status, as c.Writer.Write and c.JSON(-1, ...) do, the status is that of the
// outcome instead of 200. A status alone, set with c.Status, leaves the body
// to a middleware before the lock that renders c.Errors.
func WithErrorHandler(handle func(c *gin.Context, err error)) Option {
	must(handle != nil, "WithErrorHandler needs a function")
	return option(func(cfg *config) { cfg.onError = handle })
}

// config is what options set.
type config struct {
	core    []core.Option
	keys    []KeyFunc
	onError func(*gin.Context, error) // nil: WriteError
}

// option is a setting of this package.
type option func(*config)

// ReqlockOption makes it an Option.
func (option) ReqlockOption() {}

// configOf sorts the options into core's and this package's.
func configOf(opts []Option) *config {
	cfg := &config{}
	for _, opt := range opts {
		switch opt := opt.(type) {
		case option:
			opt(cfg)
		case core.Option:
			cfg.core = append(cfg.core, opt)
		case nil:
			must(false, "an option is nil")
		default:
			panic(fmt.Sprintf("reqlock: ginlock: %T is an option of another adapter", opt))
		}
	}
	return cfg
}
