package echolock

import (
	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
)

// WithMethods sets the methods that are idempotent by key: POST and PATCH if not set.
// Requests with other methods go straight to the handler, without Idempotent. Without
// WithMethods, the observer gets one core.Warned event for each route that such a PUT or
// DELETE reaches. Write WithMethods("PUT") to run PUT once for its key, or
// WithMethods("POST", "PATCH") if PUT and DELETE run without a key on purpose.
//
// Case does not matter. GET, HEAD, OPTIONS, TRACE and QUERY, which change nothing,
// panic, and so do an empty method and an empty list. WithMethods is an option of
// Idempotent.
func WithMethods(methods ...string) Option {
	adapter.Must(len(methods) > 0, "WithMethods needs a method")
	return ofIdempotent("WithMethods", func(s *settings) { s.Methods = methods })
}

// WithOptionalKey lets requests that have no key run as without Idempotent: off if not
// set. Such a request has none of the named headers. If no name is given, the header is
// Idempotency-Key. A request with a header but without a usable key is still refused.
// An empty name panics. WithOptionalKey is an option of Idempotent.
func WithOptionalKey(header ...string) Option {
	if len(header) == 0 {
		header = []string{httpattempt.KeyHeader}
	}
	return ofIdempotent("WithOptionalKey", func(s *settings) { s.OptionalKey = header })
}

// WithFingerprint sets the function that distinguishes different requests with the same
// key, besides method and route: SHA-256 over path, query, media type and body if not
// set. Use WithFingerprint if a client may encode a copy differently, or if the body is
// large or was read before. The page [fingerprints] describes the default. With
// WithFingerprint, Idempotent does not read the body. If fingerprint reads the body, it
// must put one back for the handler. It should return few bytes, such as a digest. Its
// error refuses the request as an error of a KeyFunc does. It must be safe for
// concurrent use. A nil function panics. WithFingerprint is an option of Idempotent.
//
// [fingerprints]: https://github.com/reqlock/reqlock/blob/main/docs/replays.md#fingerprints
func WithFingerprint(fingerprint func(c echo.Context) ([]byte, error)) Option {
	adapter.Must(fingerprint != nil, "WithFingerprint needs a function")
	return ofIdempotent("WithFingerprint", func(s *settings) { s.Fingerprint = fingerprint })
}

// WithoutFingerprint treats all requests with the same method, route and key as
// copies. The body is not read. WithoutFingerprint is an option of Idempotent.
func WithoutFingerprint() Option {
	none := func(echo.Context) ([]byte, error) { return nil, nil }
	return ofIdempotent("WithoutFingerprint", func(s *settings) { s.Fingerprint = none })
}

// WithMaxBody limits how many bytes of a body are read for the fingerprint: 1 MiB if
// not set. A longer body is core.ErrBodyTooLarge. The body is held in memory until
// the request ends, and the handler can read it. A limit below 1 panics. WithMaxBody
// is an option of Idempotent; key functions have MaxBody.
func WithMaxBody(bytes int64) Option {
	adapter.Must(bytes > 0, "WithMaxBody needs a limit above 0")
	return ofIdempotent("WithMaxBody", func(s *settings) { s.MaxBody = bytes })
}

// WithUnknown sets which failures leave the outcome of a request unknown, so that
// copies are refused with core.ErrOutcomeUnknown. The default is a panic, an error that a
// middleware outside renders and that has no status, a failure by a timeout
// (Gin and Echo) or after the body broke off, and the status 499 and those from 500
// except 501, 503 and 511, unless WithStored stores them. All others free the key or are
// stored: see WithStored. core.WithRerunUnknown can let copies run instead.
//
// unknown is called for a handler that has decided nothing (core.Attempt.Decide), and
// that has panicked, failed without an answer, or answered with a status of 400 or more,
// or with 101 and no other protocol. It is not called if the answer is the refusal of a
// Middleware behind Idempotent. unknown must be safe for concurrent use. If unknown
// panics, the outcome is unknown. A nil function panics. WithUnknown is an option of
// Idempotent.
//
// Whatever unknown returns, the outcome is unknown if the handler panicked behind a
// status that is stored, if it returned without an answer after its context had ended,
// if it ran before a middleware behind Idempotent tried again and was refused, or if its
// process died.
func WithUnknown(unknown func(f core.Failure) bool) Option {
	adapter.Must(unknown != nil, "WithUnknown needs a function")
	return ofIdempotent("WithUnknown", func(s *settings) { s.Unknown = unknown })
}

// FreeOnFailure lets the next request with the key run after a failed one. It equals
// WithUnknown with a function that returns false. Take FreeOnFailure if every effect
// of the handlers rolls back when they fail, as in one database transaction; otherwise
// leave it out, or a retry after a failure may charge twice. FreeOnFailure is an option
// of Idempotent.
func FreeOnFailure() Option {
	never := func(core.Failure) bool { return false }
	return ofIdempotent("FreeOnFailure", func(s *settings) { s.Unknown = never })
}

// WithStored sets which answers are stored, by their status. An answer that is not
// stored frees the key, so that the next request with the key runs. Exception: the
// answers of WithUnknown, which is asked first, and errors after the body broke off,
// which are never stored. The default stores 2xx, 3xx, and 4xx
// except 401, 403, 408, 409, 423, 425, 429 and 499. A nil function panics. WithStored is
// an option of Idempotent.
func WithStored(stored func(status int) bool) Option {
	adapter.Must(stored != nil, "WithStored needs a function")
	return ofIdempotent("WithStored", func(s *settings) { s.Stored = stored })
}

// WithReplayedHeaders names more headers of the answer to replay: none if not set. A page
// lists [the headers that are always replayed]. Cookies, dates and other headers of one
// exchange are never replayed: their names panic. WithReplayedHeaders is an option of
// Idempotent.
//
// [the headers that are always replayed]: https://github.com/reqlock/reqlock/blob/main/docs/replays.md#what-a-copy-gets
func WithReplayedHeaders(names ...string) Option {
	adapter.Must(len(names) > 0, "WithReplayedHeaders needs a header")
	return ofIdempotent("WithReplayedHeaders", func(s *settings) {
		s.ReplayedHeaders = append(s.ReplayedHeaders, names...)
	})
}

// settings are the settings of Idempotent.
type settings = httpattempt.Settings[echo.Context]

// ofIdempotent returns an option that only Idempotent accepts.
func ofIdempotent(name string, set func(*settings)) Option {
	return option(name, func(o *options) {
		o.idempotent = name
		set(&o.settings)
	})
}
