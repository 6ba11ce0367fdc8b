package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/internal/bridge"
)

// WithMethods sets the methods that are idempotent by key: POST and PATCH if not set. Requests
// with other methods go straight to the handler, without Idempotent. Without WithMethods, the
// observer gets one Warned event for each route that such a PUT or DELETE reaches. Write
// WithMethods("PUT") to run PUT once for its key, or WithMethods("POST", "PATCH") if PUT and
// DELETE run without a key on purpose.
//
// Case does not matter. GET, HEAD, OPTIONS, TRACE and QUERY, which change nothing, are an error,
// and so are an empty method and an empty list. The option has an effect on the Idempotent of
// HTTP adapters only. All others refuse it.
func WithMethods(methods ...string) Option {
	return ofHTTP("WithMethods", "let the key choose the methods, as ByMethod does", func(s *bridge.Settings) error {
		if len(methods) == 0 {
			return errors.New("reqlock: WithMethods: there is no method")
		}
		upper := make([]string, len(methods))
		for i, method := range methods {
			upper[i] = strings.ToUpper(method)
			switch upper[i] {
			case "":
				return errors.New("reqlock: WithMethods: a method is empty")
			case "GET", "HEAD", "OPTIONS", "TRACE", "QUERY":
				return fmt.Errorf("reqlock: WithMethods: %s is idempotent by itself, without a key: leave it out", upper[i])
			}
		}
		s.Methods = upper
		return nil
	})
}

// WithMaxBody limits how many bytes of a request's body are read for its key and its fingerprint:
// 1 MiB if not set, at least 1. A longer body is ErrBodyTooLarge. The body is held in memory until
// the request ends, and the handler can read it. The server's ReadTimeout limits how long a slow
// client may take to send the body.
//
// The option has an effect on the middlewares of HTTP adapters only: on the keys that read the
// body, and on the default fingerprint of Idempotent. The interceptors of RPC adapters refuse it.
func WithMaxBody(bytes int64) Option {
	set := func(s *bridge.Settings) error {
		if bytes < 1 {
			return fmt.Errorf("reqlock: WithMaxBody: %d is below 1", bytes)
		}
		s.MaxBody = bytes
		return nil
	}
	return scopedOption{
		option: ofRequests(set), name: "WithMaxBody", on: bridge.HTTPLock | bridge.HTTPIdempotent,
		instead: "limit the messages of the server, as grpc.MaxRecvMsgSize does",
	}
}

// WithStored sets which answers are stored, by their status. An answer that is not stored frees
// the key, so that the next request with the key runs. Exception: the answers of WithUnknown,
// which is asked first, and errors after the body broke off, which are never stored. The default
// stores 2xx, 3xx, and 4xx except 401, 403, 408, 409, 423, 425, 429 and 499.
//
// stored must be safe for concurrent use. If it panics, the outcome is unknown. A nil stored is an
// error. The option has an effect on the Idempotent of HTTP adapters only. All others refuse it:
// RPC adapters have a WithStored of their own, which chooses by codes.
func WithStored(stored func(status int) bool) Option {
	return ofHTTP("WithStored", "write %s.WithStored, which chooses by codes", func(s *bridge.Settings) error {
		s.Stored = stored
		return notNil("WithStored", stored == nil)
	})
}

// WithUnknown sets which failures leave the outcome of a request unknown, so that copies are
// refused with ErrOutcomeUnknown. The default:
//
//   - a panic;
//   - the status 499 and those from 500 except 501, 503 and 511, unless WithStored stores them;
//   - an error without a status that a middleware outside renders;
//   - a failure by a timeout (Gin, Echo and Fiber);
//   - a failure after the body broke off
//
// All others free the key or are stored: see WithStored. WithRerunUnknown can let copies run
// instead.
//
// unknown is called for a handler that has decided nothing (Attempt.Decide), and that has
// panicked, failed without an answer, or answered with a status of 400 or more, or with 101 and no
// other protocol. It is not called if the answer is the refusal of a Middleware behind Idempotent.
// unknown must be safe for concurrent use. If unknown panics, the outcome is unknown.
//
// Whatever unknown returns, the outcome is unknown if the handler panicked behind a status that is
// stored, if it returned without an answer after its context had ended, if it ran before a
// middleware behind Idempotent tried again and was refused, or if its process died.
//
// A nil unknown is an error. The option has an effect on the Idempotent of HTTP adapters only. All
// others refuse it: RPC adapters have a WithUnknown of their own, whose Failure has a code.
func WithUnknown(unknown func(Failure) bool) Option {
	return ofHTTP("WithUnknown", "write %s.WithUnknown, whose Failure has a code", func(s *bridge.Settings) error {
		s.Unknown, s.FreeOnFailure = unknown, false
		return notNil("WithUnknown", unknown == nil)
	})
}

// A Failure is how a handler of an idempotent HTTP request failed. The function of WithUnknown
// gets it, and reports whether the outcome of the request is unknown. grpclock has its own
// Failure.
type Failure struct {
	// Status is the status that the handler has written, of 400 or more or below 200. If the handler
	// leaves its answer to a middleware outside, Status is the status that the handler or
	// its error has set. After a panic, Status is any status that the handler had written
	// before. It is 0 if there is no status.
	Status int
	// Panic is true if the handler panicked, also with http.ErrAbortHandler, or ended its
	// goroutine.
	Panic bool
	// Err is the error that the handler has given to its framework: with Echo the one that
	// it returned, with Gin the last one that it added to c.Errors. If there is none, Err is
	// the error by which the body of the request broke off, or the cause for which the
	// handler's context had ended, such as ErrLost or context.Canceled. Otherwise it is nil.
	Err error
}

// WithReplayedHeaders names more headers of the answer to replay: none if not set. The names of
// several options add up. These are always replayed: Content-Type, Content-Language,
// Content-Encoding, Content-Disposition, Content-Range, X-Content-Type-Options, Location,
// Content-Location, ETag, Last-Modified, Link, Retry-After and Allow. Cookies, dates and other
// headers of one exchange are never replayed: Idempotent panics for their names. The option has an
// effect on the Idempotent of HTTP adapters only. All others refuse it.
func WithReplayedHeaders(names ...string) Option {
	return ofHTTP("WithReplayedHeaders", "leave it out, because %s replays metadata without it", func(s *bridge.Settings) error {
		if len(names) == 0 {
			return errors.New("reqlock: WithReplayedHeaders: there is no header")
		}
		s.ReplayedHeaders = slices.Concat(s.ReplayedHeaders, names)
		return nil
	})
}

// ofHTTP returns an option that has an effect on idempotent requests of HTTP only. instead says what
// to write with an RPC adapter.
func ofHTTP(name, instead string, set func(*bridge.Settings) error) Option {
	return scopedOption{option: ofRequests(set), name: name, on: bridge.HTTPIdempotent, instead: instead}
}

// notNil returns an error if the function of the option is nil.
func notNil(option string, isNil bool) error {
	if isNil {
		return errors.New("reqlock: " + option + ": the function is nil")
	}
	return nil
}
