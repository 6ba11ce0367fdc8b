package echolock

import (
	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
)

// WithMethods sets which methods are idempotent by key: POST and PATCH if not
// set. Requests of other methods go straight to the handler. Case does not
// matter. GET, HEAD, OPTIONS, TRACE and QUERY, which change nothing, panic, and
// so do an empty method and none. It is an option of Idempotent.
func WithMethods(methods ...string) Option {
	adapter.Must(len(methods) > 0, "WithMethods needs a method")
	return ofIdempotent("WithMethods", func(s *settings) { s.Methods = methods })
}

// WithOptionalKey lets requests that lack a header run as without Idempotent:
// Idempotency-Key if none is named, and else all those that are named. A request
// that has the header, but no usable key, is refused all the same. An empty name
// panics. It is an option of Idempotent.
func WithOptionalKey(header ...string) Option {
	if len(header) == 0 {
		header = []string{httpattempt.KeyHeader}
	}
	return ofIdempotent("WithOptionalKey", func(s *settings) { s.OptionalKey = header })
}

// WithFingerprint sets what tells a request from another one that comes with the
// same key by mistake, beside method and route: SHA-256 over path, query, media type
// and body if not set, see the package comment. It is for requests that a client may write in another way when it
// sends them again, and for those whose body is large or has been read before:
// with it Idempotent does not read the body, and if fingerprint does, it has to
// leave one there for the handler. What it returns should be short, such as a
// digest. Its error refuses the request as that of a KeyFunc does. It must be safe
// for concurrent use. A nil function panics. It is an option of Idempotent.
func WithFingerprint(fingerprint func(c echo.Context) ([]byte, error)) Option {
	adapter.Must(fingerprint != nil, "WithFingerprint needs a function")
	return ofIdempotent("WithFingerprint", func(s *settings) { s.Fingerprint = fingerprint })
}

// WithoutFingerprint takes every request with the same method, route and key for
// the same request. The body is not read. It is an option of Idempotent.
func WithoutFingerprint() Option {
	none := func(echo.Context) ([]byte, error) { return nil, nil }
	return ofIdempotent("WithoutFingerprint", func(s *settings) { s.Fingerprint = none })
}

// WithMaxBody sets up to how many bytes the body of a request is read for its
// fingerprint: 1 MiB if not set. A longer one is core.ErrBodyTooLarge. The body
// is held in memory until the request ends, and the handler reads the same one.
// A limit below 1 panics. It is an option of Idempotent; for key functions there
// is MaxBody.
func WithMaxBody(bytes int64) Option {
	adapter.Must(bytes > 0, "WithMaxBody needs a limit above 0")
	return ofIdempotent("WithMaxBody", func(s *settings) { s.MaxBody = bytes })
}

// WithStored sets which answers are kept, by their status; an answer that is not
// kept frees the key, so that the next request with it runs. If not set, kept are
// 2xx, 3xx, and 4xx but for 401, 403, 408, 409, 423, 425, 429 and 499. A nil
// function panics. It is an option of Idempotent.
func WithStored(stored func(status int) bool) Option {
	adapter.Must(stored != nil, "WithStored needs a function")
	return ofIdempotent("WithStored", func(s *settings) { s.Stored = stored })
}

// WithReplayedHeaders names more headers of the answer that are replayed, beside
// those that the package comment names. Cookies, dates and others that belong to
// one exchange are never replayed: they panic. It is an option of Idempotent.
func WithReplayedHeaders(names ...string) Option {
	adapter.Must(len(names) > 0, "WithReplayedHeaders needs a header")
	return ofIdempotent("WithReplayedHeaders", func(s *settings) {
		s.ReplayedHeaders = append(s.ReplayedHeaders, names...)
	})
}

// settings are those of Idempotent alone.
type settings = httpattempt.Settings[echo.Context]

// ofIdempotent is an option of Idempotent alone.
func ofIdempotent(name string, set func(*settings)) Option {
	return option(func(o *options) {
		o.idempotent = name
		set(&o.settings)
	})
}
