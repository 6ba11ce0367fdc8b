package conformance

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/nethttplock"
)

// The observer learns once of a route that lacks the wildcard of a key function.
func TestMisspeltWildcardIsReportedOnce(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(locks *core.Locker, once bool) http.Handler{
		"nethttplock: PathValue": func(locks *core.Locker, once bool) http.Handler {
			mux := http.NewServeMux()
			lock := nethttplock.Middleware(locks, core.Named("account", nethttplock.PathValue("ID")))
			if once {
				lock = nethttplock.Idempotent(locks, core.Named("account", nethttplock.PathValue("ID")))
			}
			done := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			mux.Handle("POST /accounts/{id}/transfer", lock(done))
			mux.Handle("POST /users/{ID}", lock(done))
			mux.Handle("POST /files/{ID...}", lock(done))
			mux.Handle("/", done)
			return mux
		},
		"ginlock: Param": func(locks *core.Locker, once bool) http.Handler {
			r := gin.New()
			lock := ginlock.Middleware(locks, core.Named("account", ginlock.Param("ID")))
			if once {
				lock = ginlock.Idempotent(locks, core.Named("account", ginlock.Param("ID")))
			}
			done := func(c *gin.Context) { c.Status(http.StatusOK) }
			r.Use(lock)
			r.POST("/accounts/:id/transfer", done)
			r.POST("/users/:ID", done)
			r.POST("/files/*ID", done)
			return r
		},
		"echolock: Param": func(locks *core.Locker, once bool) http.Handler {
			e := echo.New()
			lock := echolock.Middleware(locks, core.Named("account", echolock.Param("ID")))
			if once {
				lock = echolock.Idempotent(locks, core.Named("account", echolock.Param("ID")))
			}
			done := func(c echo.Context) error { return c.NoContent(http.StatusOK) }
			e.Use(lock)
			e.POST("/accounts/:id/transfer", done)
			e.POST("/users/:ID", done)
			e.Group("/files", lock).GET("/x", done) // unknown paths below it have the route /files/*
			return e
		},
	} {
		for _, once := range []bool{false, true} {
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
			handler := serve(locks.Locker, once)
			status := func(path string) int {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil))
				return w.Code
			}
			for range 3 {
				if got := status("/accounts/42/transfer"); got != http.StatusBadRequest {
					t.Errorf("%s: %d", name, got)
				}
			}
			adapter, function, _ := strings.Cut(name, ": ")
			route := "/accounts/:id/transfer"
			if function == "PathValue" {
				route = "POST /accounts/{id}/transfer"
			}
			call := function + `("ID")`
			want := `reqlock: no key: ` + call + `: the route "` + route + `" has no wildcard "ID"`
			if !slices.Equal(refused, []string{want, want, want}) {
				t.Errorf("%s: refused %q, want %q", name, refused, want)
			}
			want = "reqlock: " + adapter + ": " + call + ` refuses requests of the route "` + route + `", which has no wildcard of that name: write a name of the route`
			if got := status("/users/42"); got != http.StatusOK {
				t.Errorf("%s: with the wildcard: %d", name, got)
			}
			_, _, _ = status("/users/"), status("/files/"), status("/unknown") // no key, but no wrong name
			if !slices.Equal(warned, []string{want}) {
				t.Errorf("%s: warned %q, want %q", name, warned, want)
			}
		}
	}
}
