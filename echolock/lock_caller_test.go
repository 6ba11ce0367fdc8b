package echolock_test

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// The caller of a lease of a middleware is the code that made the middleware.
func TestCallerIsTheCodeThatMadeTheMiddleware(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*core.Locker) http.Handler{
		"Middleware": func(locks *core.Locker) http.Handler { return closingEcho(echolock.Middleware(locks, literal)) },
		"Idempotent": func(locks *core.Locker) http.Handler { return closingEcho(echolock.Idempotent(locks, literal)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t, core.WithCaller(true))
			adaptertest.CheckCaller(t, locks.Locker, build(locks.Locker), ".TestCallerIsTheCodeThatMadeTheMiddleware.func")
		})
	}
}

// closingEcho returns an application that closes the Locker during the request.
func closingEcho(middleware echo.MiddlewareFunc) http.Handler {
	e := echo.New()
	e.POST("/", func(c echo.Context) error {
		adaptertest.CloseLocker(c.Request())
		return nil
	}, middleware)
	return e
}
