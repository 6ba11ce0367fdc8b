package echolock_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A group and its route with one key take one lock, which the middleware of the group
// frees. With two keys they take both.
func TestGroupAndRoute(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	events := map[core.EventKind]int{}
	locks := locktest.New(t, core.WithObserver(func(e core.Event) {
		mu.Lock()
		defer mu.Unlock()
		events[e.Kind]++
	}))
	lock := echolock.Middleware(locks.Locker, echolock.Param("id"), core.WithWait(10*time.Second))
	e := newEcho()
	accounts := e.Group("/accounts/:id", lock)
	accounts.POST("/one", ok, lock)
	accounts.POST("/two", func(c echo.Context) error {
		for _, key := range []string{"7", "report"} {
			if _, err := locks.TryLock(t.Context(), key); err == nil {
				t.Errorf("%s is free", key)
			}
		}
		if lease, _ := core.LeaseFromContext(c.Request().Context()); lease.Key() != "report" {
			t.Errorf("the innermost lease is %q", lease.Key())
		}
		return ok(c)
	}, echolock.Middleware(locks.Locker, echolock.Literal("report")))

	if w := serve(e, newRequest(t, http.MethodPost, "/accounts/7/one", "")); w.Code != http.StatusNoContent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	mu.Lock()
	if events[core.Acquired] != 1 || events[core.Released] != 1 || events[core.Waiting] != 0 {
		t.Errorf("events %v", events)
	}
	mu.Unlock()
	if w := serve(e, newRequest(t, http.MethodPost, "/accounts/7/two", "")); w.Code != http.StatusNoContent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// The answers for unknown paths and wrong methods, for each place of the lock.
func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t, core.WithWait(10*time.Second))
	hasID := func(c echo.Context) bool { return slices.Contains(c.ParamNames(), "id") }
	param := echolock.Middleware(locks.Locker, echolock.Param("id"))
	user := echolock.Middleware(locks.Locker, echolock.Header("X-User"))
	careful := echolock.Middleware(locks.Locker, echolock.Param("id").When(hasID))
	auth := func(next echo.HandlerFunc) echo.HandlerFunc { return next }
	const route = "/accounts/:id/balance"
	for name, test := range map[string]struct {
		register                                   func(e *echo.Echo)
		known, blank, unknown, nearby, wrongMethod int
	}{
		"route": {func(e *echo.Echo) { e.GET(route, ok, param) }, 204, 400, 404, 404, 405},
		// A Group has routes of its own for all that is unknown in it.
		"group, key of the user": {func(e *echo.Echo) {
			e.Group("/accounts", user).GET("/:id/balance", ok)
		}, 204, 204, 404, 404, 404},
		"group, key of its path": {func(e *echo.Echo) {
			e.Group("/accounts/:id", param).GET("/balance", ok)
		}, 204, 400, 404, 404, 404},
		"group, key of the route's path": {func(e *echo.Echo) {
			e.Group("/accounts", param).GET("/:id/balance", ok)
		}, 204, 400, 404, 400, 400},
		"Use, key of the user": {func(e *echo.Echo) {
			e.Use(user)
			e.GET(route, ok)
		}, 204, 204, 404, 404, 405},
		"Use, key of the path": {func(e *echo.Echo) {
			e.Use(param)
			e.GET(route, ok)
		}, 204, 400, 400, 400, 400},
		"Use, where there is a parameter": {func(e *echo.Echo) {
			e.Use(careful)
			e.GET(route, ok)
		}, 204, 400, 404, 404, 405},
		"Use, where there is one, and a group with middlewares": {func(e *echo.Echo) {
			e.Use(careful)
			e.Group("/accounts", auth).GET("/:id/balance", ok)
		}, 204, 400, 404, 404, 404},
		"Use, where there is one, and a page for the rest": {func(e *echo.Echo) {
			e.Use(careful)
			e.GET(route, ok)
			e.RouteNotFound("/*", func(c echo.Context) error { return c.String(http.StatusNotFound, "nothing here") })
		}, 204, 400, 404, 404, 404},
		"group, where there is one": {func(e *echo.Echo) {
			e.Group("/accounts", careful).GET("/:id/balance", ok)
		}, 204, 400, 404, 404, 404},
		"Pre, key of the path": {func(e *echo.Echo) {
			e.Pre(param)
			e.GET(route, ok)
		}, 400, 400, 400, 400, 400}, // nothing is routed yet
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEcho()
			test.register(e)
			for _, request := range []struct {
				method, path string
				want         int
			}{
				{http.MethodGet, "/accounts/7/balance", test.known},
				{http.MethodGet, "/accounts//balance", test.blank},
				{http.MethodGet, "/other/7/balance", test.unknown},
				{http.MethodGet, "/accounts/7/nothing", test.nearby},
				{http.MethodDelete, "/accounts/7/balance", test.wrongMethod},
			} {
				r := newRequest(t, request.method, request.path, "")
				r.Header.Set("X-User", name)
				if w := serve(e, r); w.Code != request.want {
					t.Errorf("%s %s: %d %s", request.method, request.path, w.Code, w.Body)
				}
			}
		})
	}
}

// A middleware of e.Use runs after routing, so the parameters are known.
func TestUseRunsAfterRouting(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	e := newEcho()
	e.Use(echolock.Middleware(locks.Locker, echolock.Param("id").Named("account")))
	e.GET("/accounts/:id", func(c echo.Context) error {
		lease, _ := core.LeaseFromContext(c.Request().Context())
		return c.String(http.StatusOK, lease.Key())
	})
	if w := serve(e, newRequest(t, http.MethodGet, "/accounts/7", "")); w.Body.String() != "account:7" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	defer locks.Hold("account:7")()
	adaptertest.WantProblem(t, serve(e, newRequest(t, http.MethodGet, "/accounts/7", "")), http.StatusConflict, "busy")
}
