package echov5lock

import (
	"bufio"
	"net"
	"net/http"

	"github.com/labstack/echo/v5"
)

// responseOf returns the Response behind c.Response(). If there is none, it returns one that
// nothing else uses.
func responseOf(c *echo.Context) *echo.Response {
	w := c.Response()
	if response, err := echo.UnwrapResponse(w); err == nil {
		return response
	}
	return echo.NewResponse(w, c.Logger())
}

// A watch is c.Response() in front of a writer that may keep an answer back, as that of Gzip: then
// the Response behind does not show that the request is answered. A nil watch does nothing.
type watch struct {
	http.ResponseWriter
	answered bool
	status   int
	size     int
}

// watchAnswer makes a watch c.Response() until the caller calls end. It returns nil if c.Response()
// is a Response.
func watchAnswer(c *echo.Context) *watch {
	outer := c.Response()
	if _, is := outer.(*echo.Response); is {
		return nil
	}
	w := &watch{ResponseWriter: outer}
	c.SetResponse(w)
	return w
}

// end removes the watch.
func (w *watch) end(c *echo.Context) {
	if w != nil {
		c.SetResponse(w.ResponseWriter)
	}
}

// isAnswered reports whether the answer has begun.
func (w *watch) isAnswered() bool { return w != nil && w.answered }

// Unwrap returns the writer behind.
func (w *watch) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader sends a status.
func (w *watch) WriteHeader(status int) {
	w.answered, w.status = true, status
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (w *watch) Write(p []byte) (int, error) {
	w.answered = true
	n, err := w.ResponseWriter.Write(p)
	w.size += n
	return n, err
}

// Flush is for callers that use http.Flusher.
func (w *watch) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Hijack is for callers that use http.Hijacker.
func (w *watch) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// A sender is the writer to which an answer of a handler is sent. A Response takes an
// informational status for that of the answer, so a sender writes that one behind the Response.
type sender struct{ http.ResponseWriter }

// Unwrap returns the writer of the middlewares outside.
func (s sender) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// WriteHeader sends a status.
func (s sender) WriteHeader(status int) {
	w := s.ResponseWriter
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		for response, err := echo.UnwrapResponse(w); err == nil; response, err = echo.UnwrapResponse(w) {
			w = response.ResponseWriter
		}
	}
	w.WriteHeader(status)
}
