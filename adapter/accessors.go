package adapter

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
)

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

// Route returns the name of a request's route: the framework's pattern, or the path if
// the pattern is empty. A prefix of the path that an outer middleware has removed, as
// http.StripPrefix does, comes first. Otherwise one route at two prefixes would have one
// name.
func Route(r *http.Request, pattern string) string {
	if pattern == "" {
		pattern = r.URL.Path
	}
	return cutOff(r) + pattern
}

// cutOff returns the removed prefix of a request's path. If the path was changed in another
// way, it returns the whole original path.
func cutOff(r *http.Request) string {
	target, err := url.ParseRequestURI(r.RequestURI)
	if err != nil { // the request does not come from a server
		return ""
	}
	path := target.EscapedPath()
	if prefix, ok := strings.CutSuffix(path, r.URL.EscapedPath()); ok {
		return prefix
	}
	return path
}

// routeNames are the names that the events of a middleware have unless the program has set one. There
// is one for each method and pattern, so that their memory is bounded by the routes of the program,
// and a request makes none. The zero value is ready. It is safe for concurrent use.
type routeNames struct {
	made sync.Map // the keys are of the type routeName
}

type routeName struct{ method, pattern string }

// of returns the name of a route: its method and its pattern, as in "POST /payments/{id}". It is "" for
// a request without a pattern, because the path contains text of the client.
func (n *routeNames) of(method, pattern string) string {
	if pattern == "" || hasMethod(pattern) {
		return pattern
	}
	if name, ok := n.made.Load(routeName{method, pattern}); ok {
		return name.(string) //nolint:forcetypeassert // see below
	}
	key := routeName{strings.Clone(method), strings.Clone(pattern)} // a framework may use the memory of a request again
	name, _ := n.made.LoadOrStore(key, method+" "+pattern)
	return name.(string) //nolint:forcetypeassert // see above
}

// hasMethod reports whether a pattern begins with a method, as one of net/http may.
func hasMethod(pattern string) bool {
	end := strings.IndexAny(pattern, " \t/")
	return end > 0 && pattern[end] != '/'
}
