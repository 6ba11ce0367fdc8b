package adapter

import (
	"strings"
	"sync"
)

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
