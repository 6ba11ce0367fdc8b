package echolock

import (
	"fmt"

	"github.com/labstack/echo/v4"

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
	return option(func(config *Config) { config.Also = append(config.Also, keys...) })
}

// WithErrorHandler sets what answers the requests that do not run; without it,
// WriteError does. It is the ErrorHandler of Config, which says what handle
// gets and may return.
func WithErrorHandler(handle func(c echo.Context, err error) error) Option {
	must(handle != nil, "WithErrorHandler needs a function")
	return option(func(config *Config) { config.ErrorHandler = handle })
}

// option is a setting of this package.
type option func(*Config)

// ReqlockOption makes it an Option.
func (option) ReqlockOption() {}

// set adds an option, core's or this package's.
func (config *Config) set(opt Option) {
	switch opt := opt.(type) {
	case option:
		opt(config)
	case core.Option:
		config.Options = append(config.Options, opt)
	case nil:
		must(false, "an option is nil")
	default:
		panic(fmt.Sprintf("reqlock: echolock: %T is an option of another adapter", opt))
	}
}

// must panics with the message: what a programmer did wrong at registration.
func must(ok bool, message string) {
	if !ok {
		panic("reqlock: echolock: " + message)
	}
}
