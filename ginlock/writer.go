package ginlock

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
)

// A writer is the c.Writer of the handlers behind an Idempotent: Gin's, on a
// recorder. As Gin's own, it keeps a status to itself until something is written.
type writer struct {
	*httpattempt.Recorder
	outer  gin.ResponseWriter
	status int
	chosen bool // the status, by a handler
	size   int
}

var _ gin.ResponseWriter = (*writer)(nil)

// unwritten is the size of an answer of which nothing is written.
const unwritten = -1

func newWriter(outer gin.ResponseWriter, recorder *httpattempt.Recorder) *writer {
	return &writer{Recorder: recorder, outer: outer, status: outer.Status(), size: outer.Size()}
}

// Status returns the status that the answer has, or would get now.
func (w *writer) Status() int { return w.status }

// Size returns how many bytes of body were written, -1 for nothing at all.
func (w *writer) Size() int { return w.size }

// Written reports whether an answer has begun.
func (w *writer) Written() bool { return w.size != unwritten }

// WriteHeader sets the status. As for Gin's own writer, -1 is none.
func (w *writer) WriteHeader(status int) {
	if status > 0 && !w.Written() {
		w.status, w.chosen = status, true
	}
}

// WriteHeaderNow begins the answer.
func (w *writer) WriteHeaderNow() {
	if !w.Written() {
		w.size = 0
		w.Recorder.WriteHeader(w.status)
	}
}

// Write writes a part of the body, after the status.
func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeaderNow()
	n, err := w.Recorder.Write(p)
	w.size += n
	return n, err
}

// WriteString is Write.
func (w *writer) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// ReadFrom writes what it reads, all through Write.
func (w *writer) ReadFrom(src io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w}, src)
}

// FlushError sends what was written, after the status.
func (w *writer) FlushError() error {
	w.WriteHeaderNow()
	return w.Recorder.FlushError()
}

// Flush is FlushError.
func (w *writer) Flush() { _ = w.FlushError() }

var errWritten = errors.New("reqlock: a body was written, so the connection cannot be taken over")

// Hijack hands the connection over, unless a body was written.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.size > 0 {
		return nil, nil, errWritten
	}
	w.size = 0
	return w.Recorder.Hijack()
}

// CloseNotify tells when the client has gone.
func (w *writer) CloseNotify() <-chan bool { return w.outer.CloseNotify() }

// Pusher returns what can push; nil is nothing.
func (w *writer) Pusher() http.Pusher { return w.outer.Pusher() }

// noteBypass reports an answer to the exchange that was sent without c.Writer, as
// engine.HandleContext sends one.
func (w *writer) noteBypass(exchange *httpattempt.Exchange) {
	if !w.Written() && w.outer.Written() {
		exchange.Bypass()
	}
}

// end tells the exchange of an answer that the recorder does not know: one that
// those before the middleware are to give, for an unknown route or an error, or one
// that Gin sends when the chain is over: a success is one, also beside an error.
func (w *writer) end(exchange *httpattempt.Exchange, failed bool) {
	switch {
	case w.Written(), w.outer.Written():
		return
	case failed && !w.chosen, w.status >= http.StatusBadRequest && (failed || !w.chosen):
		exchange.Fail()
	case w.chosen || w.status != http.StatusOK:
		exchange.Imply(w.status)
	}
	w.outer.WriteHeader(w.status)
}

// A sender is Gin's writer with net/http's WriteHeader, which sends the status.
type sender struct{ gin.ResponseWriter }

// Unwrap returns Gin's writer.
func (s sender) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// WriteHeader sends the status and the headers.
func (s sender) WriteHeader(status int) {
	s.ResponseWriter.WriteHeader(status)
	s.WriteHeaderNow()
}
