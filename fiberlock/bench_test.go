package fiberlock_test

import (
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/fiberlock"
	"github.com/reqlock/reqlock/internal/testkit/lockbench"
)

// BenchmarkMiddleware shows what the middleware costs over the bare route, and
// over the lock alone.
func BenchmarkMiddleware(b *testing.B) {
	serve := func(b *testing.B, before ...any) {
		b.Helper()
		app := fiber.New()
		before = append(before, func(c fiber.Ctx) error { c.Status(http.StatusNoContent); return nil })
		app.Post("/accounts/:id", before[0], before[1:]...)
		handler, ctx := app.Handler(), &fasthttp.RequestCtx{}
		ctx.Request.Header.SetMethod(http.MethodPost)
		ctx.Request.SetRequestURI("/accounts/42")
		b.ReportAllocs()
		for b.Loop() {
			handler(ctx)
		}
	}
	key := fiberlock.Params("id")
	skip := core.KeyOf(func(fiber.Ctx) (string, error) { return "", core.ErrSkip })

	b.Run("bare", func(b *testing.B) { serve(b) })
	b.Run("skipped", func(b *testing.B) {
		serve(b, fiberlock.Middleware(lockbench.Locker(b, "127.0.0.1:1"), skip))
	})
	lockbench.OnEachServer(b, "middleware", func(b *testing.B, locks *core.Locker) {
		serve(b, fiberlock.Middleware(locks, key))
	})
}
