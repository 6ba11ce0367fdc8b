package ginlock

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
	"github.com/reqlock/reqlock/internal/adapter/httpreply"
)

// WriteError answers a request that did not run. It is what Middleware does
// without WithErrorHandler, and what an error handler can fall back to. It
// does not abort: Middleware has done so.
//
// The answer is the outcome of core.OutcomeOf: its status, Retry-After in whole
// seconds where trying again can help, and a problem document (RFC 9457) with
// the outcome's code:
//
//	{"type":"about:blank","title":"Conflict","status":409,"detail":"...","code":"busy"}
//
// For a client that is gone it is 499 without a body; for an error that
// core.OutcomeOf does not know, 500 with the code "internal". No answer carries
// a key, a token or the text of an error.
func WriteError(c *gin.Context, err error) { httpreply.Write(c.Writer, err) }

// refuse ends a request that does not run, and answers it unless the key
// function has done so. It is aborted before the error handler can call c.Next.
// c.Error would add the *gin.Error of a key function instead of what is around
// it.
func (cfg *config) refuse(c *gin.Context, err error) {
	c.Errors = append(c.Errors, &gin.Error{Err: err, Type: gin.ErrorTypePrivate})
	c.Abort()
	httpattempt.Refused(c.Request.Context())
	switch {
	case c.Writer.Written():
	case cfg.onError == nil:
		WriteError(c, err)
	default:
		cfg.handle(c, err)
	}
}

// handle lets the user's own error handler answer, on a guarded writer.
func (cfg *config) handle(c *gin.Context, err error) {
	w := c.Writer
	guard := httpreply.NewGuard(w, err)
	c.Writer = guarded{w, guard, httpreply.OutcomeOf(err).HTTP}
	defer func() { c.Writer = w }()
	cfg.onError(c, err)
	if !w.Written() { // past the guard, as by engine.HandleContext or Hijack
		guard.Finish()
	}
}

// A guarded writer is the c.Writer of a user's own error handler: Gin's, with
// all that begins an answer going through the guard.
type guarded struct {
	gin.ResponseWriter
	guard  *httpreply.Guard
	status int // of an answer without one
}

// Unwrap returns the writer behind the guard.
func (w guarded) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Status returns the status that an answer has, or would get now.
func (w guarded) Status() int {
	if w.guard.Answered() {
		return w.ResponseWriter.Status()
	}
	return w.status
}

// WriteHeader sets the status. As for Gin's own writer, -1 is none.
func (w guarded) WriteHeader(status int) {
	if status > 0 {
		w.guard.WriteHeader(status)
	}
}

// WriteHeaderNow sends the status and the headers.
func (w guarded) WriteHeaderNow() { _, _ = w.guard.Write(nil) }

// Write sends a part of the body, after the status.
func (w guarded) Write(p []byte) (int, error) { return w.guard.Write(p) }

// WriteString is Write.
func (w guarded) WriteString(s string) (int, error) { return w.guard.Write([]byte(s)) }

// Flush sends what was written, after the status.
func (w guarded) Flush() { w.guard.Flush() }
