package adapter

import "net/http"

// Accessors say how an adapter reads the requests of its HTTP framework. NetHTTP makes those of a
// framework on net/http. All of them are required, and must be safe for concurrent use. Each except
// Header is called at most once for a request.
type Accessors[R any] struct {
	Method func(R) string
	// Pattern returns the part of the route that the program has written, for warnings and for the
	// names of events. It is "" if there is none, and never contains text of the client.
	Pattern func(R) string
	// Route returns the route as the framework reports it, by which copies are found: see Route. The
	// path of the URL is one, too.
	Route func(R) string
	// Path and Query are as they were sent, for the fingerprint.
	Path, Query func(R) string
	// Header returns the values of a header. Its name is canonical.
	Header func(r R, name string) []string
	// Body reads the body, and leaves it for the handler. Its error is core.ErrBodyTooLarge for a
	// body over the limit, in bytes: see ReadBody, BodyTooLarge and BodyConsumed.
	Body func(r R, limit int64) ([]byte, error)

	request func(R) *http.Request // nil for a framework without net/http
}

// NetHTTP returns the Accessors of a framework on net/http. request returns the request, and pattern
// the route as the program has written it.
func NetHTTP[R any](request func(R) *http.Request, pattern func(R) string) Accessors[R] {
	return Accessors[R]{
		Method:  func(r R) string { return request(r).Method },
		Pattern: pattern,
		Route:   func(r R) string { return Route(request(r), pattern(r)) },
		Path:    func(r R) string { return request(r).URL.EscapedPath() },
		Query:   func(r R) string { return request(r).URL.RawQuery },
		Header:  func(r R, name string) []string { return request(r).Header[name] },
		Body:    func(r R, limit int64) ([]byte, error) { return ReadBody(request(r), limit) },
		request: request,
	}
}
