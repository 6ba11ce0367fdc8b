package nethttplock

import (
	"net/http"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// self is the name of this package in errors.
const self = adapter.Name("nethttplock")

// WithErrorHandler sets the function that answers requests that do not run:
// WriteError if not set. handle gets the error of core.Enter or Locker.Begin. Use
// core.RefusalOf or errors.Is to find its meaning; its text is not for clients.
// Idempotent also calls handle for a handler that gave no answer after its context had ended:
// the error is core.ErrOutcomeUnknown, or core.ErrUnavailable if the key is free.
//
// A request that did not run does not get a success by mistake. If handle writes
// nothing, or panics before it writes, WriteError answers. If handle writes a body
// without a status, the answer has the status of the refusal instead of 200. An
// explicit success status is sent: note that http.ServeContent and similar functions set one.
//
// Behind an Idempotent, an answer of handle with a status of 4xx, with a 503 that is the
// status of the refusal, or by WriteError, frees the key. Any other answer counts as if the
// handler had given it.
func WithErrorHandler(handle func(w http.ResponseWriter, r *http.Request, err error)) core.Option {
	return errorHandler.Option(handle)
}

// errorHandler is the setting of WithErrorHandler.
var errorHandler = adapter.NewSetting[handler](self, "WithErrorHandler", adapter.ForAll)

// A handler answers a request that does not run. nil means WriteError.
type handler func(http.ResponseWriter, *http.Request, error)

// refuse answers a request that does not run.
func (h handler) refuse(w http.ResponseWriter, r *http.Request, err error, entry adapter.Entry) {
	if h == nil {
		entry.Refuse(w, err)
		return
	}
	guard := entry.Guard(w, err)
	defer guard.Finish() // also when the error handler panics
	h(guard, r, err)
}

// WriteError answers a request that did not run. Middleware uses it without
// WithErrorHandler, and an error handler can call it.
//
// The answer is the core.Refusal of err: its status, Retry-After in whole seconds if a
// retry can help, and a problem document (RFC 9457) with its code:
//
//	{"type":"about:blank","title":"Conflict","status":409,"detail":"...","code":"busy"}
//
// If the client has disconnected, the answer is 499 without a body. An error that
// core.RefusalOf does not know is 500 with the code "internal". No answer contains a
// key, a token or the text of an error. core.WithProblemType sets another type.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	adapter.WriteRefusal(w, adapter.InContext(r.Context(), err))
}
