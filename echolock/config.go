package echolock

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/reqlock/reqlock/core"
)

// Config is the configuration of a middleware, in the manner of Echo's own.
type Config struct {
	// Skipper says which requests run without a lock, on purpose; none if not
	// set. core.When does the same for one key function.
	Skipper middleware.Skipper

	// Locker takes the locks. Required.
	Locker *core.Locker

	// Key says which lock a request needs. Required.
	Key KeyFunc

	// Also are more keys that are locked for the same request: see the option
	// Also.
	Also []KeyFunc

	// Options are settings of the lock, such as core.WithWait. They are given
	// to Locker.With.
	Options []core.Option

	// ErrorHandler answers the requests that do not run; WriteError if not
	// set. It gets the error as core.Enter returned it: ask core.OutcomeOf
	// what it means, or errors.Is. What it returns is what the middleware
	// returns, so the application's HTTPErrorHandler renders it.
	//
	// A request whose handler did not run never gets a success by accident.
	// If ErrorHandler returns err itself, or has answered nothing and returns
	// nil, WriteError goes on; if it writes a body without a status, the
	// status is that of the outcome instead of 200. Writing to
	// c.Response().Writer and hijacking are answers as well. What a key function
	// has answered by itself stands, and ErrorHandler is not called.
	ErrorHandler func(c echo.Context, err error) error
}

// complete checks what is required and sets the defaults.
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

// view is l.With, with an error for the bad setting at which that panics.
func view(l *core.Locker, opts []core.Option) (with *core.Locker, err error) {
	defer func() {
		switch caught := recover().(type) {
		case nil:
		case runtime.Error:
			panic(caught)
		case error:
			err = caught
		default:
			err = fmt.Errorf("%v", caught)
		}
	}()
	return l.With(opts...), nil
}
