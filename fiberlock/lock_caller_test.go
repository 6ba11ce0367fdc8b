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
