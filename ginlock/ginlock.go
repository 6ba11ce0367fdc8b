package ginlock

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpkey"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// A KeyFunc reads the lock key from a request. Functions of this package and
// of core, and plain functions, go together:
//
//	core.Named("account", ginlock.Param("id"))
type KeyFunc = core.KeyFunc[*gin.Context]

// Middleware runs the rest of a request's handlers under a lock. It goes
// before the handler of a route, or into a group or the engine with Use. key
// says which lock; requests with the same key run one at a time, in all
// processes that use the same Redis. The options are those of core, which are
// given to l.With, and those of this package.
//
// Without core.WithWait a request whose lock is held by another is refused at
// once: the error goes to c.Error, the chain is aborted, and the answer is the
// one that WriteError describes. Else the handlers find the lease with
// FromContext, and in c.Request.Context(), which is cancelled if the lease is
// lost. The lock is freed when the last of them has returned, panicked or
// ended its goroutine, and not before: not when the client has gone. They get
// the c.Writer that was there, and those before the lock get their c.Request
// back.
//
// Middleware panics if l or key is nil, or an option is bad or another
// adapter's. What it returns is safe for concurrent use.
func Middleware(l *core.Locker, key KeyFunc, opts ...Option) gin.HandlerFunc {
	adapter.Must(l != nil, "Middleware needs a locker")
	adapter.Must(key != nil, "Middleware needs a key function")
	cfg := &config{}
	l = l.With(registration.Apply(adapter, cfg, opts)...)
	adapter.Must(cfg.idempotent == "", cfg.idempotent+" is an option of Idempotent, not of Middleware")
	keys := append([]KeyFunc{key}, cfg.also...)

	return func(c *gin.Context) {
		r := c.Request
		ctx, release, err := core.Enter(r.Context(), l, c, keys...)
		if err != nil {
			cfg.refuse(c, err)
			return
		}
		defer release()
		defer restore(c, r)
		c.Request = r.WithContext(ctx)
		c.Next()
	}
}

// restore gives c the request back that it had before the lock, so that what
// runs after it does not find a context that ended with the lease. The form
// that a handler has parsed goes along.
func restore(c *gin.Context, r *http.Request) {
	httpkey.HandUp(c.Request, r)
	c.Request = r
}

// FromContext returns the lease under which a request runs, and false if it
// runs without one. For the several keys of one request it is the lease of the
// middleware's first key. It does not depend on the engine's
// ContextWithFallback.
func FromContext(c *gin.Context) (*core.Lease, bool) {
	if c.Request == nil { // as in the contexts of gin.CreateTestContext
		return nil, false
	}
	return core.FromContext(c.Request.Context())
}
