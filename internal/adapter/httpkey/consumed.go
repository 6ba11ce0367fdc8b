package httpkey

import (
	"errors"
	"net/http"

	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// IsConsumed reports whether a middleware outside has read the body of a request for which
// ReadBody has returned no bytes. An empty body without a Content-Length counts as empty: it
// looks the same as one that was read.
func IsConsumed(r *http.Request) bool {
	buffered, _ := r.Body.(*bufferedBody)
	return r.ContentLength > 0 || r.MultipartForm != nil || len(r.PostForm) > 0 ||
		buffered != nil && isClosed(buffered.err)
}

// isClosed reports whether an error of reading a body says that the body was closed before. The
// error of HTTP/2 has only its text.
func isClosed(err error) bool {
	return errors.Is(err, http.ErrBodyReadAfterClose) || err != nil && err.Error() == "body closed by handler"
}

// Consumed returns the error of a function that needs a body which a middleware outside has
// read. reader is the function as the program calls it.
func Consumed(reader string) error { return consumed{reader} }

// consumed is the error of Consumed. It is a mistake of the program.
type consumed struct{ reader string }

func (consumed) Error() string { return "a middleware outside has read the body" }

// warning says which requests are refused, and what to write.
func (m consumed) warning(a registration.Adapter) string {
	return m.reader + " refuses requests whose body a middleware outside has read: put that middleware inside, or let it " + leaveBody(a)
}

// leaveBody says how a middleware of the adapter's framework leaves the body for others.
func leaveBody(a registration.Adapter) string {
	const back = ".Body = io.NopCloser(bytes.NewReader(body))"
	switch a {
	case "ginlock":
		return "bind JSON with c.ShouldBindBodyWithJSON, or put the body back with c.Request" + back
	case "echolock":
		return "put the body back with c.Request()" + back
	default:
		return "put the body back with r" + back
	}
}
