package httpbody

import (
	"errors"
	"mime"
	"net/http"
	"reflect"
	"strings"
)

// IsConsumed reports whether a middleware outside has read the body of a request for which
// Read has returned no bytes. An empty body without a Content-Length counts as empty: it
// looks the same as one that was read. So do a body that may be empty after its decompression,
// and a form that was parsed and has no fields: the client may have sent those.
func IsConsumed(r *http.Request) bool {
	buffered, _ := r.Body.(*bufferedBody)
	switch {
	case buffered != nil && isClosed(buffered.err):
		return true
	case hasEmptyForm(r):
		return false
	}
	return r.ContentLength > 0 && !isDecompressed(r) || r.MultipartForm != nil || len(r.PostForm) > 0
}

// hasEmptyForm reports whether a middleware outside has parsed the body as a form, and has found
// no fields: there are none, or the form is malformed.
func hasEmptyForm(r *http.Request) bool {
	if r.PostForm == nil || len(r.PostForm) > 0 || r.MultipartForm != nil && len(r.MultipartForm.Value)+len(r.MultipartForm.File) > 0 {
		return false
	}
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return mediaType == "application/x-www-form-urlencoded" || mediaType == "multipart/form-data"
}

// isDecompressed reports whether the body is the reader of a decompressor. The Content-Length is
// that of the compressed body.
func isDecompressed(r *http.Request) bool {
	var body any = r.Body
	if buffered, ok := body.(*bufferedBody); ok {
		body = buffered.source
	}
	t := reflect.TypeOf(body)
	return t != nil && t.Kind() == reflect.Pointer && strings.Contains(t.Elem().PkgPath(), "compress/")
}

// isClosed reports whether an error of reading a body says that the body was closed before. The
// error of HTTP/2 has only its text.
func isClosed(err error) bool {
	return errors.Is(err, http.ErrBodyReadAfterClose) || err != nil && err.Error() == "body closed by handler"
}

// Consumed returns the error of a function that needs a body which a middleware outside has
// read. reader is the function as the program calls it.
func Consumed(reader string) error { return ConsumedError{reader} }

// A ConsumedError is the error of Consumed. It is a mistake of the program.
type ConsumedError struct{ reader string }

func (ConsumedError) Error() string { return "a middleware outside has read the body" }

// Warning says which requests are refused, and what to write. adapter is the name of a package.
func (m ConsumedError) Warning(adapter string) string {
	return m.reader + " refuses requests whose body a middleware outside has read: put that middleware inside, or let it " + leaveBody(adapter)
}

// leaveBody says how a middleware of the adapter's framework leaves the body for others.
func leaveBody(adapter string) string {
	const back = ".Body = io.NopCloser(bytes.NewReader(body))"
	switch adapter {
	case "ginlock":
		return "bind JSON with c.ShouldBindBodyWithJSON, or put the body back with c.Request" + back
	case "echolock", "echov5lock":
		return "put the body back with c.Request()" + back
	default:
		return "put the body back with r" + back
	}
}
