package fiberlock_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/fiberlock"
)

// A wildcard may be empty.
func TestEmptyWildcardIsNoMistake(t *testing.T) {
	t.Parallel()
	warned := 0
	locks := locktest.New(t, core.WithObserver(func(e core.Event) {
		if e.Kind == core.Warned {
			warned++
		}
	}))
	app := fiber.New()
	app.Get("/files/*", fiberlock.Middleware(locks.Locker, fiberlock.Params("*")), ok)
	for path, want := range map[string]int{"/files/": http.StatusBadRequest, "/files/a": http.StatusOK} {
		if w := answerOf(app, newRequest(t, http.MethodGet, path, "")); w.Code != want || warned != 0 {
			t.Errorf("%s: %d %s, %d warnings", path, w.Code, w.Body, warned)
		}
	}
}

// The answers for unknown paths and wrong methods, for each place of the lock.
func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	const route = "/accounts/:id/balance"
	for name, test := range map[string]struct {
		register                                   func(app *fiber.App, param, user fiber.Handler)
		known, unknown, nearby, wrongMethod, warns int
	}{
		"route": {func(app *fiber.App, param, _ fiber.Handler) { app.Get(route, param, ok) }, 200, 404, 404, 405, 0},
		"group, key of its path": {func(app *fiber.App, param, _ fiber.Handler) {
			app.Group("/accounts/:id", param).Get("/balance", ok)
		}, 200, 404, 404, 405, 0},
		"group, key of the route's path": {func(app *fiber.App, param, _ fiber.Handler) {
			app.Group("/accounts", param).Get("/:id/balance", ok)
		}, 400, 404, 400, 400, 1}, // Fiber does not know the route yet
		"Use, key of the path":            {func(app *fiber.App, param, _ fiber.Handler) { app.Use(param); app.Get(route, ok) }, 400, 400, 400, 400, 1},
		"Use of a path, key of that path": {func(app *fiber.App, param, _ fiber.Handler) { app.Use("/accounts/:id", param); app.Get(route, ok) }, 200, 404, 404, 405, 0},
		"Use, key of the user":            {func(app *fiber.App, _, user fiber.Handler) { app.Use(user); app.Get(route, ok) }, 200, 404, 404, 405, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			warned := 0
			locks := locktest.New(t, core.WithWait(10*time.Second), core.WithObserver(func(e core.Event) {
				if e.Kind == core.Warned && strings.Contains(e.Err.Error(), `Params("id") refuses requests`) {
					warned++
				}
			}))
			app := fiber.New()
			test.register(app, fiberlock.Middleware(locks.Locker, fiberlock.Params("id")), fiberlock.Middleware(locks.Locker, fiberlock.Header("X-User")))
			for _, request := range []struct {
				method, path string
				want         int
			}{
				{http.MethodGet, "/accounts/7/balance", test.known},
				{http.MethodGet, "/other/7/balance", test.unknown},
				{http.MethodGet, "/accounts/7/nothing", test.nearby},
				{http.MethodDelete, "/accounts/7/balance", test.wrongMethod},
			} {
				if w := answerOf(app, newRequest(t, request.method, request.path, "", "X-User: ada")); w.Code != request.want {
					t.Errorf("%s %s: %d %s", request.method, request.path, w.Code, w.Body)
				}
			}
			if warned != test.warns {
				t.Errorf("%d warnings", warned)
			}
		})
	}
}
