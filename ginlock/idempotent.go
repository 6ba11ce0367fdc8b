package ginlock

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// Idempotent runs a request once for its key. A copy that arrives after the request
// has ended gets the first answer, with the header "Idempotent-Replayed: true". A copy that
// arrives earlier is refused, or waits with core.WithWait. See the package comment on
// idempotent endpoints.
//
//	r.POST("/payments", auth, ginlock.Idempotent(locks, core.Join(ginlock.Get("user_id"), ginlock.IdempotencyKey())), pay)
//
// Idempotent applies to POST and PATCH: see core.WithMethods. The same key with another
// path, query, media type or body is refused with core.ErrMismatch: see
// core.WithFingerprint. A request without a key is refused: see core.WithOptionalKey. The keys
// of two routes are independent. The route is c.FullPath, or the path of the URL if
// c.FullPath is empty. A prefix that http.StripPrefix has removed belongs to the
// route too.
//
// The answer of the handlers behind Idempotent is first stored in Redis, and then
// sent. Until then a recorder buffers it; the recorder is their c.Writer. They find the
// lease and the attempt in c.Request.Context(): see core.AttemptFromContext. With the
// attempt they can decide what is stored. The handler goes on if its client disconnects: see
// core.WithClientCancel. For the handlers before Idempotent, c.Writer and
// c.Request are the same as without it. If an answer is replayed, the chain is
// aborted.
//
// Put http.TimeoutHandler, and a timeout middleware that runs handlers in another
// goroutine, outside Idempotent: inside, its 503 or 408 frees the key while the handler
// still runs, and a copy runs beside it, unless a Middleware stands inside the timeout.
//
// Idempotent panics where Middleware does. It also panics for a key of core.All or with
// Permits, Shared or SharedWhen, and for a Locker that runs requests without Redis
// (core.WithFailOpen), shares its locks (core.WithPermits and core.WithShared) or is from
// core.NewQuorum. The middleware is safe for concurrent use.
func Idempotent(l *core.Locker, key Key, opts ...core.Option) gin.HandlerFunc {
	once := adapter.Must(adapter.NewIdempotentHTTP(self, "Idempotent", l, key, accessors(), opts))
	onError, _ := errorHandler.Value(once.Locker())

	return func(c *gin.Context) {
		entry, exchange, err := once.Begin(c.Request.Context(), c)
		defer entry.Leave()
		switch {
		case err != nil:
		case exchange == nil:
			serve(c, entry)
		case exchange.Replayed():
			c.Abort()
			exchange.Replay(sender{c.Writer})
		default:
			err = run(c, exchange)
		}
		if err != nil {
			onError.refuse(c, err, entry)
		}
	}
}

// accessors returns how the requests are read.
func accessors() adapter.Accessors[*gin.Context] {
	a := adapter.NetHTTP(requestOf, (*gin.Context).FullPath)
	a.Body = readBody
	return a
}

// run runs the handlers behind the middleware.
func run(c *gin.Context, exchange *adapter.Exchange) error {
	before := c.Request
	outer := c.Writer
	return exchange.Run(sender{outer}, before, func(recorder *adapter.Recorder, running *http.Request) {
		defer restore(c, before)
		defer func() { c.Writer = outer }()
		w := newWriter(outer, recorder)
		defer w.noteBypass(exchange) // also after a panic
		c.Request, c.Writer = running, w
		state := stateOf(c)
		returned := false
		defer func() {
			if !returned {
				w.noteChosen(exchange)
			}
		}()
		c.Next()
		returned = true
		state.failures = min(state.failures, len(c.Errors)) // HandleContext has no errors from before
		for _, failure := range c.Errors[state.failures:] {
			exchange.SetError(failure.Err)
		}
		if loss := state.lossOf(running.Context(), c); loss != nil && !w.chosen && !outer.Written() {
			exchange.SetLost()
			return
		}
		w.end(exchange, len(c.Errors) > state.failures)
	})
}
