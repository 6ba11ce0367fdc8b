package adapter

import (
	"net/http"
	"net/url"
	"strings"
)

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
