package echov5lock

import (
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

// A watch shows whether a request was answered on the writer of a middleware outside, which may
// pass the answer on later. For echo.UnwrapResponse it is no Response.
type watch struct{ *echo.Response }

// watchAnswer returns the Response that shows whether a request was answered through c.Response(). If
// another writer is in front of it, as that of Gzip, c.Response() is a watch until the caller
// calls unwatch.
func watchAnswer(c *echo.Context) (seen *echo.Response, unwatch func()) {
	outer := c.Response()
	switch w := outer.(type) {
	case *echo.Response:
		return w, func() {}
	case watch:
		return w.Response, func() {}
	}
	seen = echo.NewResponse(outer, c.Logger())
	c.SetResponse(watch{seen})
	return seen, func() { c.SetResponse(outer) }
}

// A sender is the writer to which an answer of a handler is sent. A Response takes an
// informational status for that of the answer, so a sender writes that one behind the Response.
type sender struct {
	http.ResponseWriter
	response *echo.Response
}

// Unwrap returns the writer of the middlewares outside.
func (s sender) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// WriteHeader sends a status.
func (s sender) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		s.response.ResponseWriter.WriteHeader(status)
		return
	}
	s.ResponseWriter.WriteHeader(status)
}
