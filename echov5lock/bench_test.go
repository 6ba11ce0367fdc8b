package echov5lock_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/echov5lock"
	"github.com/reqlock/reqlock/internal/testkit/lockbench"
)

// BenchmarkMiddleware compares the middleware with the bare handler and with the lock
// alone.
func BenchmarkMiddleware(b *testing.B) {
	serve := func(b *testing.B, stack ...echo.MiddlewareFunc) {
		b.Helper()
		e := echo.New()
		e.POST("/accounts/:id", ok, stack...)
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/accounts/42", nil)
		w := lockbench.Sink()
		b.ReportAllocs()
		for b.Loop() {
			e.ServeHTTP(w, r)
		}
	}
	key := echov5lock.Param("id")
	skip := core.KeyOf(func(*echo.Context) (string, error) { return "", core.ErrSkip })

	b.Run("bare", func(b *testing.B) { serve(b) })
	b.Run("skipped", func(b *testing.B) {
		serve(b, echov5lock.Middleware(lockbench.Locker(b, "127.0.0.1:1"), skip))
	})
	lockbench.OnEachServer(b, "middleware", func(b *testing.B, locks *core.Locker) {
		serve(b, echov5lock.Middleware(locks, key))
	})
}
