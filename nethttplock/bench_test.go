package nethttplock_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/lockbench"
	"github.com/reqlock/reqlock/nethttplock"
)

// BenchmarkMiddleware compares the middleware with the bare handler and with the lock
// alone.
func BenchmarkMiddleware(b *testing.B) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	serve := func(b *testing.B, h http.Handler) {
		b.Helper()
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/", nil)
		r.SetPathValue("id", "42")
		w := lockbench.Sink()
		b.ReportAllocs()
		for b.Loop() {
			h.ServeHTTP(w, r)
		}
	}
	key := nethttplock.PathValue("id")
	skip := core.KeyOf(func(*http.Request) (string, error) { return "", core.ErrSkip })

	b.Run("bare", func(b *testing.B) { serve(b, h) })
	b.Run("skipped", func(b *testing.B) {
		serve(b, nethttplock.Middleware(lockbench.Locker(b, "127.0.0.1:1"), skip)(h))
	})
	lockbench.OnEachServer(b, "middleware", func(b *testing.B, locks *core.Locker) {
		serve(b, nethttplock.Middleware(locks, key)(h))
	})
}
