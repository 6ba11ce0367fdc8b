package ginlock

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// self is the name of this package in errors.
const self = adapter.Name("ginlock")

// WithErrorHandler sets the function that answers requests that do not run:
// WriteError if not set. handle gets the error of core.Enter or Locker.Begin, which
// is also the last one of c.Errors. Use core.RefusalOf or errors.Is to find its
// meaning; its text is not for clients. The chain is already aborted. Idempotent also calls
// handle for handlers that gave no answer after their context had ended: the error is
// core.ErrOutcomeUnknown, or core.ErrUnavailable if the key is free.
//
// A request that did not run does not get a success by mistake. If handle does
// nothing, WriteError answers. If handle writes a body without a status, as
// c.Writer.Write and c.JSON(-1, ...) do, the answer has the status of the refusal
// instead of 200. c.Writer.Status returns it until another one is set. If handle only sets a
// status with c.Status, a middleware before the lock that renders c.Errors writes the
// body. If the function of a core.KeyOf has answered by itself, its answer is kept, and
// handle is not called.
//
// Behind an Idempotent, an answer of handle with a status of 4xx, with a 503 that is the
// status of the refusal, or by WriteError, frees the key. Any other answer counts as if the
// handler had given it.
func WithErrorHandler(handle func(c *gin.Context, err error)) core.Option {
	return errorHandler.Option(handle)
}

// errorHandler is the setting of WithErrorHandler.
var errorHandler = adapter.NewSetting[handler](self, "WithErrorHandler", adapter.ForAll)

// A handler answers a request that does not run. nil means WriteError.
type handler func(*gin.Context, error)

// WriteError answers a request that did not run. Middleware uses it without
// WithErrorHandler, and an error handler can call it. It does not abort: Middleware
// has done so.
//
// The answer is the core.Refusal of err: its status, Retry-After in whole seconds if a
// retry can help, and a problem document (RFC 9457) with its code:
//
//	{"type":"about:blank","title":"Conflict","status":409,"detail":"...","code":"busy"}
//
// If the client has disconnected, the answer is 499 without a body. An error that
// core.RefusalOf does not know is 500 with the code "internal". No answer contains a
// key, a token or the text of an error. core.WithProblemType sets another type.
func WriteError(c *gin.Context, err error) {
	adapter.WriteRefusal(sender{c.Writer}, adapter.InContext(c.Request.Context(), err))
}

// refuse ends a request that does not run, and answers it unless the key has
// done so. It aborts the chain first, so that c.Next in the error handler runs
// nothing. It does not call c.Error: for an error that wraps the *gin.Error of a key,
// c.Error would add only the *gin.Error.
func (h handler) refuse(c *gin.Context, err error, entry adapter.Entry) {
	c.Errors = append(c.Errors, &gin.Error{Err: err, Type: gin.ErrorTypePrivate})
	c.Abort()
	switch {
	case c.Writer.Written():
		entry.SetAnswered(c.Writer.Status(), c.Writer.Size())
	case h == nil:
		entry.Refuse(sender{c.Writer}, err)
	default:
		h.handle(c, err, entry.Guard(c.Writer, err))
	}
}

// handle calls the application's error handler with a guarded writer.
func (h handler) handle(c *gin.Context, err error, guard *adapter.Guard) {
	w := c.Writer
	c.Writer = guarded{w, guard}
	defer func() { c.Writer = w }()
	h(c, err)
	if !w.Written() { // an answer without the guard: engine.HandleContext, Hijack
		guard.Finish()
	}
}

// A guarded writer is the c.Writer of the application's error handler. Methods that
// begin an answer go through the guard; the other methods are Gin's.
type guarded struct {
	gin.ResponseWriter
	guard *adapter.Guard
}

// Unwrap returns the guard.
func (w guarded) Unwrap() http.ResponseWriter { return w.guard }

// Status returns the status of the answer, or the one that it would get now.
func (w guarded) Status() int {
	if w.guard.Answered() {
		return w.ResponseWriter.Status()
	}
	return w.guard.Status()
}

// WriteHeader sets the status. As in Gin's own writer, -1 means no status.
func (w guarded) WriteHeader(status int) {
	if status > 0 {
		w.guard.WriteHeader(status)
	}
}

// WriteHeaderNow sends the status and the headers.
func (w guarded) WriteHeaderNow() { _, _ = w.guard.Write(nil) }

// Write sends a part of the body, after the status.
func (w guarded) Write(p []byte) (int, error) { return w.guard.Write(p) }

// WriteString is Write for a string.
func (w guarded) WriteString(s string) (int, error) { return w.guard.Write([]byte(s)) }

// Flush sends the status and the written part of the body.
func (w guarded) Flush() { w.guard.Flush() }
