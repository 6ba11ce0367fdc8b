package httpreply

import (
	"bufio"
	"net"
	"net/http"
)

// A Guard is the ResponseWriter of an application's error handler. It ensures that a
// refused request is not answered with a success by mistake: a body without a status gets
// the status of the outcome instead of 200, and if nothing was written, Finish answers.
//
// http.NewResponseController finds the wrapped writer. A Guard is not safe for concurrent
// use.
type Guard struct {
	http.ResponseWriter
	err      error
	implied  int // the status of a body without one
	answered bool
	status   int    // of the answer; 0 if the connection was taken over
	ours     bool   // Write has answered
	body     []byte // as far as it is kept, or nil
	limit    int    // of body, in bytes
}

// NewGuard guards w for a request that did not run because of err.
func NewGuard(w http.ResponseWriter, err error) *Guard {
	return &Guard{ResponseWriter: w, err: err, implied: RefusalOf(err).HTTP}
}

// NewWatch returns a Guard that records an answer and changes nothing. Finish is not for it.
func NewWatch(w http.ResponseWriter) *Guard {
	return &Guard{ResponseWriter: w, implied: http.StatusOK}
}

// Keep makes Answer return the body, if it has no more bytes than limit.
func (g *Guard) Keep(limit int) { g.body, g.limit = []byte{}, limit }

// Unwrap returns the wrapped writer.
func (g *Guard) Unwrap() http.ResponseWriter { return g.ResponseWriter }

// WriteHeader sends any status: the application may choose a success.
func (g *Guard) WriteHeader(status int) {
	informational := 100 <= status && status < 200 && status != http.StatusSwitchingProtocols
	if !g.answered && !informational {
		g.answered, g.status = true, status
	}
	g.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body, after the status.
func (g *Guard) Write(p []byte) (int, error) {
	g.begin()
	switch {
	case g.body == nil:
	case len(p) > g.limit-len(g.body):
		g.body = nil
	default:
		g.body = append(g.body, p...)
	}
	return g.ResponseWriter.Write(p)
}

// FlushError sends the buffered part of the answer, after the status.
func (g *Guard) FlushError() error {
	g.begin()
	return http.NewResponseController(g.ResponseWriter).Flush()
}

// Flush is FlushError for callers that use http.Flusher.
func (g *Guard) Flush() { _ = g.FlushError() }

// Hijack gives the connection to the caller, which answers on it.
func (g *Guard) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(g.ResponseWriter).Hijack()
	g.answered = g.answered || err == nil
	return conn, rw, err
}

// Finish writes the default answer if there is none yet. The adapter calls it after the
// error handler.
func (g *Guard) Finish() {
	if !g.answered {
		Write(g, g.err)
	}
}

// Answered reports whether an answer has begun, or the connection was taken over.
func (g *Guard) Answered() bool { return g.answered }

// noteOurs records that Write answers on a writer that is, or wraps, a Guard.
func noteOurs(w http.ResponseWriter) {
	if g, guarded := UnwrapTo[*Guard](w); guarded {
		g.ours = !g.answered
	}
}

// Answer returns the status and the body of the answer, and whether Write has answered, for Finish
// or for the error handler. The body is nil if Keep does not keep it.
func (g *Guard) Answer() (status int, body []byte, ours bool) { return g.status, g.body, g.ours }

// begin sends the implied status if none was sent.
func (g *Guard) begin() {
	if !g.answered {
		g.WriteHeader(g.implied)
	}
}

// UnwrapTo returns the first T among a writer and the writers that it wraps.
func UnwrapTo[T any](w http.ResponseWriter) (found T, is bool) {
	for w != nil {
		if found, is = w.(T); is {
			return found, true
		}
		wrapper, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			break
		}
		w = wrapper.Unwrap()
	}
	return found, false
}
