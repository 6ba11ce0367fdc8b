package ginlock_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/testkit/lockbench"
)

// BenchmarkMiddleware shows what the middleware costs over the bare route, and
// over the lock alone.
func BenchmarkMiddleware(b *testing.B) {
	serve := func(b *testing.B, before ...gin.HandlerFunc) {
		b.Helper()
		engine := gin.New()
		engine.POST("/accounts/:id", append(before, func(c *gin.Context) { c.Status(http.StatusNoContent) })...)
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/accounts/42", nil)
		w := lockbench.Sink()
		b.ReportAllocs()
		for b.Loop() {
			engine.ServeHTTP(w, r)
		}
	}
	key := ginlock.Param("id")
	skip := core.KeyOf(func(*gin.Context) (string, error) { return "", core.ErrSkip })

	b.Run("bare", func(b *testing.B) { serve(b) })
	b.Run("skipped", func(b *testing.B) {
		serve(b, ginlock.Middleware(lockbench.Locker(b, "127.0.0.1:1"), skip))
	})
	lockbench.OnEachServer(b, "middleware", func(b *testing.B, locks *core.Locker) {
		serve(b, ginlock.Middleware(locks, key))
	})
}
