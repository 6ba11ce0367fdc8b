package nethttplock_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/nethttplock"
)

// Around a mux the route of a request is not known yet. The observer learns it once, and what
// to write.
func TestPathValueAroundAMuxIsReportedOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mux           func(lock func(http.Handler) http.Handler) http.Handler
		path          string
		refused, warn string
	}{
		"the mux": {
			func(lock func(http.Handler) http.Handler) http.Handler {
				mux := http.NewServeMux()
				mux.Handle("POST /accounts/{id}", notRun(t))
				return lock(mux)
			}, "/accounts/7",
			`reqlock: no key: PathValue("id"): no mux has matched a route yet`,
			`reqlock: nethttplock: PathValue("id") refuses requests for which no mux has matched a route yet: ` +
				`put the middleware around the handler of the route, and not around the mux`,
		},
		"a mux behind a subtree": {
			func(lock func(http.Handler) http.Handler) http.Handler {
				inner, mux := http.NewServeMux(), http.NewServeMux()
				inner.Handle("POST /admin/{id}/close", notRun(t))
				mux.Handle("/admin/", lock(inner))
				return mux
			}, "/admin/7/close",
			`reqlock: no key: PathValue("id"): the route "/admin/" has no wildcard "id"`,
			`reqlock: nethttplock: PathValue("id") refuses requests of the route "/admin/", which has no wildcard of that name: ` +
				`write a name of the route, or put the middleware around the handlers of the routes below it`,
		},
	} {
		for _, wrap := range []func(*core.Locker, nethttplock.Key) func(http.Handler) http.Handler{
			func(l *core.Locker, key nethttplock.Key) func(http.Handler) http.Handler {
				return nethttplock.Middleware(l, key)
			},
			func(l *core.Locker, key nethttplock.Key) func(http.Handler) http.Handler {
				return nethttplock.Idempotent(l, key)
			},
		} {
			var warned, refused []string
			locks := locktest.New(t, core.WithObserver(func(e core.Event) {
				switch e.Kind {
				case core.Warned:
					warned = append(warned, e.Err.Error())
				case core.Refused:
					refused = append(refused, e.Err.Error())
				default:
				}
			}))
			handler := test.mux(wrap(locks.Locker, nethttplock.PathValue("id").Named("account")))
			for range 2 {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, test.path, strings.NewReader("")))
				if w.Code != http.StatusBadRequest {
					t.Errorf("%s: %d", name, w.Code)
				}
			}
			if want := []string{test.refused, test.refused}; !slices.Equal(refused, want) {
				t.Errorf("%s: refused %q, want %q", name, refused, want)
			}
			if want := []string{test.warn}; !slices.Equal(warned, want) {
				t.Errorf("%s: warned %q, want %q", name, warned, want)
			}
		}
	}
}

// notRun returns a handler that must not run.
func notRun(t *testing.T) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler has run") })
}
