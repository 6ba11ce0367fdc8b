package httpreply

import (
	"bufio"
	"net"
	"net/http"
)

// A Guard is the ResponseWriter of a user's own error handler. It sees to it
// that a request which did not run never gets a success by accident: a body
// without a status gets the status of the outcome instead of 200, and where
// nothing was written at all, Finish answers.
//
// http.NewResponseController reaches the writer behind it. Like that one, it is
// not safe for concurrent use.
type Guard struct {
	http.ResponseWriter
	err      error
	answered bool
}

// NewGuard guards w for a request that did not run because of err.
func NewGuard(w http.ResponseWriter, err error) *Guard {
	return &Guard{ResponseWriter: w, err: err}
}

// Unwrap returns the writer behind the guard.
func (g *Guard) Unwrap() http.ResponseWriter { return g.ResponseWriter }

// WriteHeader sends the status, whatever it is: a success on purpose passes.
func (g *Guard) WriteHeader(status int) {
	informational := 100 <= status && status < 200 && status != http.StatusSwitchingProtocols
	g.answered = g.answered || !informational
	g.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body, after the status.
func (g *Guard) Write(p []byte) (int, error) {
	g.begin()
	return g.ResponseWriter.Write(p)
}

// FlushError sends what was written, after the status.
func (g *Guard) FlushError() error {
	g.begin()
	return http.NewResponseController(g.ResponseWriter).Flush()
}

// Flush is FlushError for those who look for an http.Flusher.
func (g *Guard) Flush() { _ = g.FlushError() }

// Hijack hands the connection over, and with it the answer.
func (g *Guard) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(g.ResponseWriter).Hijack()
	g.answered = g.answered || err == nil
	return conn, rw, err
}

// Finish writes the default answer if there is none yet. It is called after
// the error handler has returned.
func (g *Guard) Finish() {
	if !g.answered {
		Write(g, g.err)
	}
}

// Answered reports whether an answer has begun, or the connection was given away.
func (g *Guard) Answered() bool { return g.answered }

// begin sends the status of the outcome if none was sent.
func (g *Guard) begin() {
	if !g.answered {
		g.WriteHeader(OutcomeOf(g.err).HTTP)
	}
}
