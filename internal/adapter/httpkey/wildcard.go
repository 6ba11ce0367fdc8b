package httpkey

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/keytext"
)

// MustBeWildcard panics unless a name is that of a wildcard: neither empty nor with the signs of
// a pattern. function is the name of the adapter's function.
func MustBeWildcard(function, name string) {
	must(name != "", function+" needs a name")
	bare := strings.Trim(name, "{:.}")
	must(bare != "" && bare == name, keytext.Call(function, name)+": write the name alone, as in "+keytext.Call(function, bare))
}

// Wildcard returns the key of a path value, as keytext.Text does. route is the route of the
// request as the framework writes it, or "" if no mux has matched a route yet. lacksName says
// that the route has no wildcard of the name. Then the error of an empty value says so.
func Wildcard(function, name, value, route string, lacksName bool) (string, error) {
	if value == "" && lacksName {
		return "", misnamed{function, name, route}
	}
	return keytext.Text(value)
}

// hasWildcard reports whether a pattern of net/http or of chi has a wildcard of the name.
func hasWildcard(pattern, name string) bool {
	for _, end := range [...]string{"}", "...}", ":"} {
		if strings.Contains(pattern, "{"+name+end) {
			return true
		}
	}
	return false
}

// misnamed is core.ErrNoKey for all requests of a route: it lacks the wildcard. It is a mistake
// of the program. The route is "" if there is none yet.
type misnamed struct{ function, name, route string }

func (m misnamed) Error() string {
	if m.route == "" {
		return fmt.Sprintf("%v: no mux has matched a route yet", core.ErrNoKey)
	}
	return fmt.Sprintf("%v: the route %q has no wildcard %q", core.ErrNoKey, m.route, m.name)
}

// Unwrap returns core.ErrNoKey.
func (misnamed) Unwrap() error { return core.ErrNoKey }

// warning says which requests are refused, why, and what to write.
func (m misnamed) warning(adapter.Name) string {
	text := keytext.Call(m.function, m.name) + " refuses requests "
	if m.route == "" {
		return text + "for which no mux has matched a route yet: put the middleware around the handler of the route, and not around the mux"
	}
	text += "of the route " + strconv.Quote(m.route) + ", which has no wildcard of that name: write a name of the route"
	if strings.HasSuffix(m.route, "/") || strings.HasSuffix(m.route, "*") { // there may be a mux behind the middleware
		text += ", or put the middleware around the handlers of the routes below it"
	}
	return text
}
