package ginlock_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/redistest"
)

// sink is a ResponseWriter that costs nothing.
type sink struct{ header http.Header }

func (s sink) Header() http.Header         { return s.header }
func (s sink) Write(p []byte) (int, error) { return len(p), nil }
func (s sink) WriteHeader(int)             {}

// BenchmarkMiddleware shows what the middleware costs over the bare route, and
// over the lock alone.
func BenchmarkMiddleware(b *testing.B) {
	serve := func(b *testing.B, before ...gin.HandlerFunc) {
		b.Helper()
		engine := gin.New()
		engine.POST("/accounts/:id", append(before, func(c *gin.Context) { c.Status(http.StatusNoContent) })...)
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/accounts/42", nil)
		w := sink{http.Header{}}
		b.ReportAllocs()
		for b.Loop() {
			engine.ServeHTTP(w, r)
		}
	}
	key := ginlock.Param("id")
	skip := func(*gin.Context) (string, error) { return "", core.ErrSkip }

	b.Run("bare", func(b *testing.B) { serve(b) })
	b.Run("skipped", func(b *testing.B) {
		serve(b, ginlock.Middleware(benchLocker(b, "127.0.0.1:1"), skip))
	})
	for _, server := range []struct {
		name  string
		start func(*testing.B) string
	}{
		{"miniredis", func(b *testing.B) string { return miniredis.RunT(b).Addr() }},
		{"redis", func(b *testing.B) string { return redistest.Start(b).Addr() }},
	} {
		b.Run(server.name+"/lock alone", func(b *testing.B) {
			locks := benchLocker(b, server.start(b))
			b.ReportAllocs()
			for b.Loop() {
				lease, err := locks.TryLock(b.Context(), "42")
				if err != nil {
					b.Fatal(err)
				}
				_ = lease.Release(b.Context())
			}
		})
		b.Run(server.name+"/middleware", func(b *testing.B) {
			serve(b, ginlock.Middleware(benchLocker(b, server.start(b)), key))
		})
	}
}

func benchLocker(b *testing.B, addr string) *core.Locker {
	b.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	locks := core.Must(core.New(rdb))
	b.Cleanup(func() {
		_ = locks.Close(context.Background())
		_ = rdb.Close()
	})
	return locks
}
