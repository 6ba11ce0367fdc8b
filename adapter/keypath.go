package adapter

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/keytext"
)

// A PathValue is a parameter of the route of a request.
type PathValue struct {
	Value string
	Route string // as the framework writes it; "" if none is known yet
	// Missing is true if no request of this route has the parameter.
	Missing bool
}

// PathKey returns the key of a parameter of the route. function is the function of the adapter,
// such as "Param". It panics for a name that is empty or has the signs of a path, such as ":id".
//
// A request of a route that lacks the parameter is refused with core.ErrNoKey. A Lock and an
// Idempotent then send one core.Warned event for the route. read must be safe for concurrent use.
func PathKey[R any](function, name string, read func(R) PathValue) core.Key[R] {
	call := keytext.Call(function, name)
	must(name != "", function+" needs a name")
	bare := strings.Trim(name, "{:.}")
	must(bare != "" && bare == name, call+": write the name alone, as in "+keytext.Call(function, bare))
	return core.KeyOf(func(r R) (string, error) {
		value := read(r)
		if value.Value == "" && value.Missing {
			return "", misnamed{function, name, value.Route}
		}
		return keytext.Text(value.Value)
	}).Describe(call, "the path value "+strconv.Quote(name))
}

// misnamed is core.ErrNoKey for all requests of a route: it lacks the parameter. It is a mistake
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

// Warning says which requests are refused, why, and what to write.
func (m misnamed) Warning(string) string {
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

// must panics with the message if a registration is wrong.
func must(ok bool, message string) {
	if !ok {
		panic("reqlock: " + message)
	}
}
