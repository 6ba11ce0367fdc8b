package ginlock

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// Idempotent runs a request once for its key: a copy of it that comes later gets
// the first one's answer, and one that comes meanwhile is refused, or waits with
// core.WithWait. See the package comment on idempotent endpoints.
//
//	r.POST("/payments", auth, ginlock.Idempotent(locks, core.Join(ginlock.Get("user_id"), ginlock.IdempotencyKey())), pay)
//
// It is for POST and PATCH: see WithMethods. The same key with another path,
// query, media type or body is refused with core.ErrMismatch: see WithFingerprint. A request
// without key is refused, or see WithOptionalKey. The keys of two routes have
// nothing to do with each other: a route is what c.FullPath says, or the URL's
// path where that is empty, behind what http.StripPrefix has cut off.
//
// The answer of the handlers behind it is kept in Redis, and only then sent. Until
// then a recorder holds it, which is their c.Writer. They find the lease with
// FromContext, and their attempt with AttemptFromContext, which lets them decide
// by themselves what is kept. Those before it find c.Writer and c.Request as
// without Idempotent. Where there is an answer already, the chain is aborted.
//
// Idempotent panics where Middleware does, and with a Locker that runs requests
// without Redis (core.WithFailOpen), or is one of core.NewQuorum. What it returns is
// safe for concurrent use.
func Idempotent(l *core.Locker, key KeyFunc, opts ...Option) gin.HandlerFunc {
	adapter.Must(l != nil, "Idempotent needs a locker")
	adapter.Must(key != nil, "Idempotent needs a key function")
	cfg := &config{}
	l = l.With(registration.Apply(adapter, cfg, opts)...)
	adapter.Must(len(cfg.also) == 0, "Also is an option of Middleware: put a Middleware behind Idempotent")
	endpoint, err := httpattempt.New(adapter, l, key, readBody, cfg.settings)
	if err != nil {
		panic(err)
	}

	return func(c *gin.Context) {
		exchange, err := endpoint.Begin(c.Request, c, routeOf(c))
		switch {
		case errors.Is(err, core.ErrSkip):
			c.Next()
		case err != nil:
			cfg.refuse(c, err)
		case exchange.Replayed():
			c.Abort()
			exchange.Replay(sender{c.Writer})
		default:
			run(c, exchange)
		}
	}
}

// run runs the handlers behind the middleware.
func run(c *gin.Context, exchange *httpattempt.Exchange) {
	before, failures := c.Request, len(c.Errors)
	outer := c.Writer
	exchange.Run(sender{outer}, before, func(recorder *httpattempt.Recorder, running *http.Request) {
		defer restore(c, before)
		defer func() { c.Writer = outer }()
		w := newWriter(outer, recorder)
		defer w.noteBypass(exchange) // also after a panic
		c.Request, c.Writer = running, w
		c.Next()
		w.end(exchange, len(c.Errors) > failures)
	})
}

// routeOf names the route of a request.
func routeOf(c *gin.Context) string { return httpattempt.RouteOf(c.Request, c.FullPath()) }

// AttemptFromContext returns the attempt under which the handlers behind an
// Idempotent run, and false if they run without one:
//
//	if attempt, ok := ginlock.AttemptFromContext(c); ok {
//		attempt.Decide(core.Uncertain)
//	}
func AttemptFromContext(c *gin.Context) (*core.Attempt, bool) {
	if c.Request == nil {
		return nil, false
	}
	return core.AttemptFromContext(c.Request.Context())
}
