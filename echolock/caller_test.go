package echolock_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
)

// The caller of a lease of a middleware is the code that made the middleware.
func TestCallerIsTheCodeThatMadeTheMiddleware(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*core.Locker) http.Handler{
		"Middleware": func(locks *core.Locker) http.Handler { return closingEcho(echolock.Middleware(locks, literal)) },
		"Idempotent": func(locks *core.Locker) http.Handler { return closingEcho(echolock.Idempotent(locks, literal)) },
		"a Config": func(locks *core.Locker) http.Handler {
			return closingEcho(echolock.MiddlewareWithConfig(echolock.Config{Locker: locks, Key: literal}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t, core.WithCaller(true))
			h := build(locks.Locker)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			r := httptest.NewRequestWithContext(context.WithValue(t.Context(), closeKey{}, func() {
				err := locks.Close(ended)
				if err == nil || !strings.Contains(err.Error(), ".TestCallerIsTheCodeThatMadeTheMiddleware.func") {
					t.Errorf("close: %v", err)
				}
			}), http.MethodPost, "/", nil)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
		})
	}
}

// closeKey is the key of a function that closes the Locker during a request.
type closeKey struct{}

// closingEcho returns an application that closes the Locker during the request.
func closingEcho(middleware echo.MiddlewareFunc) http.Handler {
	e := echo.New()
	e.POST("/", func(c echo.Context) error {
		c.Request().Context().Value(closeKey{}).(func())()
		return nil
	}, middleware)
	return e
}
