package adapter

import (
	"bufio"
	"net"
	"net/http"

	"github.com/reqlock/reqlock/core"
)

// A Guard is the ResponseWriter of a program's error handler: see Entry.Guard. It ensures that a
// refused request is not answered with a success by mistake: a body without a status gets
// the status of the refusal instead of 200, and if nothing was written, Finish answers.
//
// http.NewResponseController finds the wrapped writer. A Guard is not safe for concurrent
// use.
type Guard struct {
	http.ResponseWriter
	err      error
	implied  int // the status of a body without one
	answered bool
	status   int    // of the answer; 0 if the connection was taken over
	ours     bool   // WriteRefusal has answered
	body     []byte // as far as it is kept, or nil
	limit    int    // of body, in bytes

	mistakes *mistakeCheck // of the middleware, or nil
}

// newGuard guards w for a request that did not run because of err.
func newGuard(w http.ResponseWriter, err error) *Guard {
	return &Guard{ResponseWriter: w, err: err, implied: RefusalOf(err).HTTP}
}

// newWatch returns a Guard that records an answer and changes nothing. Finish is not for it.
func newWatch(w http.ResponseWriter) *Guard {
	return &Guard{ResponseWriter: w, implied: http.StatusOK}
}

// keep makes the Guard keep the body, if it has no more bytes than limit.
func (g *Guard) keep(limit int) { g.body, g.limit = []byte{}, limit }

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

// Finish answers by WriteRefusal if there is no answer yet. The adapter calls it after the error
// handler.
func (g *Guard) Finish() {
	if !g.answered {
		WriteRefusal(g, g.err)
	}
}

// Answered reports whether an answer has begun, or the connection was taken over.
func (g *Guard) Answered() bool { return g.answered }

// Status returns the status of the answer, or the one that a body without a status would get.
func (g *Guard) Status() int {
	if g.answered {
		return g.status
	}
	return g.implied
}

// noteOurs records that WriteRefusal answers on a writer that is, or wraps, a Guard.
func noteOurs(w http.ResponseWriter, err error, refusal core.Refusal) {
	if g, guarded := unwrapTo[*Guard](w); guarded {
		g.ours = !g.answered
		g.mistakes.answered(err, refusal)
	}
}

// refused returns the answer to a request that is refused because of err.
func (g *Guard) refused(err error) refused {
	return refused{status: g.status, body: g.body, ours: g.ours, cause: err}
}

// begin sends the implied status if none was sent.
func (g *Guard) begin() {
	if !g.answered {
		g.WriteHeader(g.implied)
	}
}

// unwrapTo returns the first T among a writer and the writers that it wraps.
func unwrapTo[T any](w http.ResponseWriter) (found T, is bool) {
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
