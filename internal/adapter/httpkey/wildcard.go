package httpkey

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/keypart"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// MustBeWildcard panics unless a name is that of a wildcard: neither empty nor with the signs of
// a pattern. function is the name of the adapter's function.
func MustBeWildcard(function, name string) {
	must(name != "", function+" needs a name")
	bare := strings.Trim(name, "{:.}")
	must(bare != "" && bare == name, keypart.Call(function, name)+": write the name alone, as in "+keypart.Call(function, bare))
}

// Wildcard returns the key of a path value, as keypart.Text does. route is the route of the
// request as the framework writes it, or "" if no mux has matched a route yet. lacksName says
// that the route has no wildcard of the name. Then the error of an empty value says so.
func Wildcard(function, name, value, route string, lacksName bool) (string, error) {
	if value == "" && lacksName {
		return "", &wildcardError{misnamed{function, name, route}}
	}
	return keypart.Text(value)
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

// misnamed is a wildcard that a route does not have. The route is "" if there is none yet.
type misnamed struct{ function, name, route string }

// A wildcardError is core.ErrNoKey for all requests of a route: it lacks the wildcard.
type wildcardError struct{ misnamed }

func (e *wildcardError) Error() string {
	if e.route == "" {
		return fmt.Sprintf("%v: no mux has matched a route yet", core.ErrNoKey)
	}
	return fmt.Sprintf("%v: the route %q has no wildcard %q", core.ErrNoKey, e.route, e.name)
}

// Unwrap returns core.ErrNoKey.
func (e *wildcardError) Unwrap() error { return core.ErrNoKey }

// A WildcardCheck warns of routes that lack the wildcard of a key function: once for each of
// them, so that its memory is bounded by the routes of the program. It is safe for concurrent
// use.
type WildcardCheck struct {
	adapter registration.Adapter
	warn    func(error)
	warned  sync.Map // the keys are of the type misnamed
}

// NewWildcardCheck returns the check of a middleware of the adapter.
func NewWildcardCheck(adapter registration.Adapter, l *core.Locker) *WildcardCheck {
	return &WildcardCheck{adapter: adapter, warn: l.Warn}
}

// Check warns if err is the error of a key function for a wildcard that the route lacks.
func (c *WildcardCheck) Check(err error) {
	var wrong *wildcardError
	if !errors.As(err, &wrong) {
		return
	}
	if _, again := c.warned.LoadOrStore(wrong.misnamed, nil); again {
		return
	}
	c.warn(fmt.Errorf("reqlock: %s: %s refuses %s", c.adapter, keypart.Call(wrong.function, wrong.name), wrong.advice()))
}

// advice says which requests are refused, why, and what to write.
func (m misnamed) advice() string {
	switch text := "requests of the route " + strconv.Quote(m.route) + ", which has no wildcard of that name: write a name of the route"; {
	case m.route == "":
		return "requests for which no mux has matched a route yet: put the middleware around the handler of the route, and not around the mux"
	case strings.HasSuffix(m.route, "/"), strings.HasSuffix(m.route, "*"): // there may be a mux behind the middleware
		return text + ", or put the middleware around the handlers of the routes below it"
	default:
		return text
	}
}
