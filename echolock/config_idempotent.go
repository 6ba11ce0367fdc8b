package echolock

import (
	"errors"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/reqlock/reqlock/core"
)

// IdempotentConfig is the configuration of an Idempotent, in the style of Echo's own
// middlewares.
type IdempotentConfig struct {
	// Skipper reports which requests run as without Idempotent: none if not set.
	Skipper middleware.Skipper

	// Locker begins the attempts. Required.
	Locker *core.Locker

	// Key is the same for all copies of a request. Required. core.Func converts a function
	// of your own that returns a string.
	Key KeyFunc

	// Options are settings of the attempts, such as core.WithRetention. They are
	// passed to Locker.With.
	Options []core.Option

	// ErrorHandler answers requests that do not run and have no stored answer: see
	// Config.ErrorHandler. It gets the error of Locker.Begin.
	ErrorHandler func(c echo.Context, err error) error

	// Methods are the methods that are idempotent by key: see WithMethods. nil means
	// POST and PATCH.
	Methods []string

	// OptionalKey are headers. Requests without any of them run as without
	// Idempotent: see WithOptionalKey. If it is empty, every request needs a key.
	OptionalKey []string

	// Fingerprint distinguishes different requests with the same key: see
	// WithFingerprint. nil means path, query, media type and body. If the function
	// returns no bytes, all requests with the same key are copies.
	Fingerprint func(c echo.Context) ([]byte, error)

	// MaxBody limits how many bytes of a body are read for the fingerprint: see
	// WithMaxBody. 0 means 1 MiB.
	MaxBody int64

	// Unknown reports whether a failed handler leaves the outcome of its request
	// unknown: see WithUnknown.
	Unknown func(core.Failure) bool

	// Stored reports which answers are stored, by their status: see WithStored.
	Stored func(status int) bool

	// ReplayedHeaders are more headers to replay: see WithReplayedHeaders.
	ReplayedHeaders []string
}

// complete checks the required fields and sets the defaults.
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

// settings returns the settings that all frameworks share.
func (config *IdempotentConfig) settings() settings {
	return settings{
		Methods:         config.Methods,
		OptionalKey:     config.OptionalKey,
		Fingerprint:     config.Fingerprint,
		MaxBody:         config.MaxBody,
		Unknown:         config.Unknown,
		Stored:          config.Stored,
		ReplayedHeaders: config.ReplayedHeaders,
	}
}
