package httpattempt

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// defaultMethods returns the methods that are idempotent by key if the application has not
// chosen others.
func defaultMethods() []string { return []string{http.MethodPost, http.MethodPatch} }

// An uncovered warns of requests that reach an Endpoint and run as without it, because of
// their method. It warns once for each method and pattern, so that its memory is bounded by
// the routes of the program. It is safe for concurrent use.
type uncovered struct {
	adapter registration.Adapter
	warn    func(error)
	warned  sync.Map // the keys are of the type uncoveredRoute
}

// An uncoveredRoute is what uncovered warns of once.
type uncoveredRoute struct{ method, pattern string }

// note warns of a request if a user may expect that it is covered: of PUT and DELETE, which
// change something, and may do so again for each copy.
func (u *uncovered) note(method, pattern string) {
	if method != http.MethodPut && method != http.MethodDelete {
		return
	}
	if _, again := u.warned.LoadOrStore(uncoveredRoute{method, pattern}, nil); again {
		return
	}
	where := "a route without a pattern"
	if pattern != "" {
		where = fmt.Sprintf("the route %q", pattern)
	}
	covered := `"` + strings.Join(defaultMethods(), `", "`) + `"`
	u.warn(fmt.Errorf("reqlock: %s: Idempotent does not cover %[2]s on %[3]s: write WithMethods(%[4]s, %[2]q) to run %[2]s "+
		"once for its key, or WithMethods(%[4]s) if %[2]s runs without a key on purpose", u.adapter, method, where, covered))
}
