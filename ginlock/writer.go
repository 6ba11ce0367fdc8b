package ginlock

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/adapter"
)

// A writer is the c.Writer of the handlers behind an Idempotent. It implements
// gin.ResponseWriter on a recorder. Like Gin's own writer, it does not send a status
// before something is written.
type writer struct {
	*adapter.Recorder
	outer  gin.ResponseWriter
	status int
	chosen bool // a handler has set the status
	size   int
}

var _ gin.ResponseWriter = (*writer)(nil)

// unwritten is the size of an answer before it begins.
const unwritten = -1

func newWriter(outer gin.ResponseWriter, recorder *adapter.Recorder) *writer {
	return &writer{Recorder: recorder, outer: outer, status: outer.Status(), size: outer.Size()}
}

// Status returns the status of the answer, or the one that it would get now.
func (w *writer) Status() int { return w.status }

// Size returns how many bytes of body were written, or -1 if the answer has not
// begun.
func (w *writer) Size() int { return w.size }

// Written reports whether an answer has begun.
func (w *writer) Written() bool { return w.size != unwritten }

// WriteHeader sets the status. As in Gin's own writer, -1 means no status.
func (w *writer) WriteHeader(status int) {
	switch {
	case w.Written():
		w.NoteLate(status)
	case status > 0:
		w.status, w.chosen = status, true
	}
}

// WriteHeaderNow begins the answer.
func (w *writer) WriteHeaderNow() {
	if !w.Written() {
		w.size = 0
		if !w.chosen && w.HasLost() { // a middleware renders the loss, with the status that c has
			w.status = http.StatusInternalServerError
		}
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

// WriteString is Write for a string.
func (w *writer) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// ReadFrom copies src with Write, so that the recorder sees all bytes.
func (w *writer) ReadFrom(src io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w}, src)
}

// FlushError sends the status and the written part of the body.
func (w *writer) FlushError() error {
	w.WriteHeaderNow()
	return w.Recorder.FlushError()
}

// Flush is FlushError without the error.
func (w *writer) Flush() { _ = w.FlushError() }

var errWritten = errors.New("reqlock: a body was written, so the connection cannot be taken over")

// Hijack takes over the connection, unless a body was written.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.size > 0 {
		return nil, nil, errWritten
	}
	w.size = 0
	return w.Recorder.Hijack()
}

// CloseNotify returns a channel that receives a value when the client disconnects.
func (w *writer) CloseNotify() <-chan bool { return w.outer.CloseNotify() }

// Pusher returns the http.Pusher of the connection, or nil.
func (w *writer) Pusher() http.Pusher { return w.outer.Pusher() }

// noteBypass reports to the exchange an answer that was sent without c.Writer, as
// engine.HandleContext does.
func (w *writer) noteBypass(exchange *adapter.Exchange) {
	if !w.Written() && w.outer.Written() {
		exchange.SetSent(w.outer.Status())
	}
}

// noteChosen reports to the exchange a status that a handler has set, and Gin has not sent.
func (w *writer) noteChosen(exchange *adapter.Exchange) {
	if w.chosen && !w.Written() {
		exchange.SetStatus(w.status)
	}
}

// end reports to the exchange an answer that the recorder does not see. That is the
// answer of a handler before the middleware, for an unknown route or an error. Or Gin
// sends the answer when the chain ends: a success that a handler has set is such an
// answer, even if there is an error too.
func (w *writer) end(exchange *adapter.Exchange, failed bool) {
	switch {
	case w.Written(), w.outer.Written():
		return
	case w.status >= http.StatusBadRequest && (failed || !w.chosen):
		exchange.SetFailed(w.status)
	case failed && !w.chosen:
		exchange.SetFailed(0)
	case w.chosen || w.status != http.StatusOK:
		exchange.SetStatus(w.status)
	}
	w.outer.WriteHeader(w.status)
}

// A sender is Gin's writer with the WriteHeader of net/http, which sends the status
// at once.
type sender struct{ gin.ResponseWriter }

// Unwrap returns Gin's writer.
func (s sender) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// WriteHeader sends the status and the headers.
func (s sender) WriteHeader(status int) {
	s.ResponseWriter.WriteHeader(status)
	s.WriteHeaderNow()
}
