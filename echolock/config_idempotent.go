package echolock

import (
	"errors"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/reqlock/reqlock/core"
)

// IdempotentConfig is the configuration of an Idempotent, in the manner of
// Echo's own middlewares.
type IdempotentConfig struct {
	// Skipper says which requests run as without Idempotent, on purpose; none if
	// not set.
	Skipper middleware.Skipper

	// Locker begins the attempts. Required.
	Locker *core.Locker

	// Key says which requests are copies of each other. Required.
	Key KeyFunc

	// Options are settings of the attempts, such as core.WithRetention. They are
	// given to Locker.With.
	Options []core.Option

	// ErrorHandler answers the requests that do not run and have no answer: see
	// Config.ErrorHandler. It gets the error as Locker.Begin returned it.
	ErrorHandler func(c echo.Context, err error) error

	// Methods are those that are idempotent by key: see WithMethods. nil is POST
	// and PATCH.
	Methods []string

	// OptionalKey are headers; requests that lack all of them run as without
	// Idempotent: see WithOptionalKey. None is that every request needs a key.
	OptionalKey []string

	// Fingerprint tells requests apart that come with one key by mistake: see
	// WithFingerprint. nil is that of path, query, media type and body; a function that
	// returns nothing tells none apart.
	Fingerprint func(c echo.Context) ([]byte, error)

	// MaxBody is up to how many bytes a body is read for its fingerprint: see
	// WithMaxBody. 0 is 1 MiB.
	MaxBody int64

	// Stored says which answers are kept, by their status: see WithStored.
	Stored func(status int) bool

	// ReplayedHeaders are more headers that are replayed: see
	// WithReplayedHeaders.
	ReplayedHeaders []string
}

// complete checks what is required and sets the defaults.
func (config *IdempotentConfig) complete() error {
	if config.Locker == nil {
		return errors.New("reqlock: echolock: Idempotent needs a Locker")
	}
	if config.Key == nil {
		return errors.New("reqlock: echolock: Idempotent needs a Key function")
	}
	if config.Skipper == nil {
		config.Skipper = middleware.DefaultSkipper
	}
	if config.ErrorHandler == nil {
		config.ErrorHandler = WriteError
	}
	return nil
}

// settings returns what all frameworks have in common.
func (config *IdempotentConfig) settings() settings {
	return settings{
		Methods:         config.Methods,
		OptionalKey:     config.OptionalKey,
		Fingerprint:     config.Fingerprint,
		MaxBody:         config.MaxBody,
		Stored:          config.Stored,
		ReplayedHeaders: config.ReplayedHeaders,
	}
}
