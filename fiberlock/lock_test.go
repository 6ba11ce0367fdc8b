package fiberlock_test

import (
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/fiberlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// The caller of a lease of a middleware is the code that made the middleware.
func TestCallerIsTheCodeThatMadeTheMiddleware(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*core.Locker) fiber.Handler{
		"Middleware": func(locks *core.Locker) fiber.Handler { return fiberlock.Middleware(locks, literal) },
		"Idempotent": func(locks *core.Locker) fiber.Handler { return fiberlock.Idempotent(locks, literal) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t, core.WithCaller(true))
			var request *http.Request
			app := fiber.New()
			app.Post("/", build(locks.Locker), func(fiber.Ctx) error {
				adaptertest.CloseLocker(request)
				return nil
			})
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				request = r
				handlerOf(app).ServeHTTP(w, r)
			})
			adaptertest.CheckCaller(t, locks.Locker, h, ".TestCallerIsTheCodeThatMadeTheMiddleware.func")
		})
	}
}

// A refusal does not repeat the headers of an application that keeps the case of their names.
func TestNamesOfHeadersThatAreNotNormalized(t *testing.T) {
	t.Parallel()
	app := fiber.New(fiber.Config{DisableHeaderNormalizing: true})
	app.Post("/", func(c fiber.Ctx) error {
		c.Set("x-request-id", "1")
		return c.Next()
	}, fiberlock.Middleware(adaptertest.UnusedLocker(t), byKey), mustNotRun(t))
	w := send(t, newClient(t), newRequest(t, http.MethodPost, listen(t, app), ""))
	if values := w.Header()["X-Request-Id"]; w.Code != http.StatusBadRequest || len(values) != 1 {
		t.Errorf("%d %v %s", w.Code, values, w.Body)
	}
}
