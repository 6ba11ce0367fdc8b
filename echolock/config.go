package echolock

import (
	"errors"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/reqlock/reqlock/core"
)

// Config is the configuration of a middleware, in the style of Echo's own
// middlewares.
type Config struct {
	// Skipper reports which requests run without a lock: none if not set. core.When
	// does the same for one key function.
	Skipper middleware.Skipper

	// Locker takes the locks. Required.
	Locker *core.Locker

	// Key chooses the lock of a request. Required. core.Func converts a function of your
	// own that returns a string.
	Key KeyFunc

	// Also are more keys to lock for the same request: see the option Also.
	Also []KeyFunc

	// Options are settings of the lock, such as core.WithWait. They are passed to
	// Locker.With.
	Options []core.Option

	// ErrorHandler answers requests that do not run: WriteError if not set. It gets
	// the error of core.Enter: use core.RefusalOf or errors.Is to find its meaning.
	// The middleware returns the error that ErrorHandler returns, so the
	// application's HTTPErrorHandler renders it. Idempotent calls it also for a handler
	// that was cut off: see core.Attempt.CutOff.
	//
	// A request that did not run does not get a success by mistake. If ErrorHandler
	// returns err itself, or returns nil without an answer, WriteError answers. If
	// ErrorHandler writes a body without a status, the answer has the status of the
	// outcome instead of 200. Writing to c.Response().Writer and hijacking are answers as
	// well. If a key function has answered by itself, its answer is kept, and
	// ErrorHandler is not called.
	//
	// Behind an Idempotent, an answer of ErrorHandler with a status of 4xx, or by
	// WriteError, frees the key. Any other answer counts as if the handler had given it.
	ErrorHandler func(c echo.Context, err error) error
}

// complete checks the required fields and sets the defaults.
func (config *Config) complete() error {
	if config.Locker == nil {
		return errors.New("reqlock: echolock: a middleware needs a Locker")
	}
	if config.Key == nil {
		return errors.New("reqlock: echolock: a middleware needs a Key function")
	}
	for _, key := range config.Also {
		if key == nil {
			return errors.New("reqlock: echolock: Also has a nil key function")
		}
	}
	if config.Skipper == nil {
		config.Skipper = middleware.DefaultSkipper
	}
	if config.ErrorHandler == nil {
		config.ErrorHandler = WriteError
	}
	return nil
}
