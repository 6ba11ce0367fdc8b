package adapter

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/reqlock/reqlock/core"
)

// An uncovered warns of requests that reach an IdempotentHTTP and run as without it, because of
// their method. It warns once for each method and pattern, so that its memory is bounded by
// the routes of the program. It is safe for concurrent use.
type uncovered struct {
	adapter Name
	locker  *core.Locker
	warned  sync.Map // the keys are of the type uncoveredRoute
}

// An uncoveredRoute is what uncovered warns of once.
type uncoveredRoute struct {
	by              *uncovered
	method, pattern string
}

// note warns of a request if a user may expect that it is covered: of PUT and DELETE, which
// change something, and may do so again for each copy.
func (u *uncovered) note(method, pattern string) {
	if method != http.MethodPut && method != http.MethodDelete {
		return
	}
	route := uncoveredRoute{u, method, pattern}
	if _, again := u.warned.LoadOrStore(route, nil); again {
		return
	}
	where := "a route without a pattern"
	if pattern != "" {
		where = fmt.Sprintf("the route %q", pattern)
	}
	covered := `"` + strings.Join(defaultMethods(), `", "`) + `"`
	Warn(u.locker, route, u.adapter.Errorf("Idempotent does not cover %[1]s on %[2]s: write core.WithMethods(%[3]s, %[1]q) to run "+
		"%[1]s once for its key, or core.WithMethods(%[3]s) if %[1]s runs without a key on purpose", method, where, covered))
}
