package ginlock_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// The caller of a lease of a middleware is the code that made the middleware.
func TestCallerIsTheCodeThatMadeTheMiddleware(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*core.Locker) http.Handler{
		"Middleware": func(locks *core.Locker) http.Handler { return closingEngine(ginlock.Middleware(locks, literal)) },
		"Idempotent": func(locks *core.Locker) http.Handler { return closingEngine(ginlock.Idempotent(locks, literal)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t, core.WithCaller(true))
			adaptertest.CheckCaller(t, locks.Locker, build(locks.Locker), ".TestCallerIsTheCodeThatMadeTheMiddleware.func")
		})
	}
}

// closingEngine returns an engine that closes the Locker during the request.
func closingEngine(middleware gin.HandlerFunc) http.Handler {
	r := gin.New()
	r.POST("/", middleware, func(c *gin.Context) { adaptertest.CloseLocker(c.Request) })
	return r
}
