package ginlock

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// Middleware runs the following handlers of a request under a lock. Put it before the
// handler of a route, or into a group or the engine with Use. key chooses the lock:
// requests with the same key run one at a time, in all processes that use the same
// Redis. The options are options of core, which are passed to l.With, and options of
// this package.
//
// Without core.WithWait a request is refused at once if another request holds its
// lock: the error goes to c.Error, the chain is aborted, and WriteError answers.
// Otherwise the handlers find the lease in c.Request.Context() (core.LeaseFromContext),
// which is cancelled if the lease is lost. The lock is freed when the last handler
// returns, panics or ends its goroutine, and not before, even if the client
// disconnects. If the lock is lost and they give no answer, the client gets lease_lost
// of core.RefusalOf instead of an empty 200. c.Writer is not replaced. After the lock,
// c.Request is the request from before the lock again.
//
// Middleware panics if l is nil or key is the zero Key, if an option is invalid, has no
// effect on its requests or belongs to another adapter, for a key of SharedWhen without
// core.WithWait above 0, and for Permits or Shared of a key with an option that excludes
// them: see core.WithPermits. The middleware is safe for concurrent use.
func Middleware(l *core.Locker, key Key, opts ...core.Option) gin.HandlerFunc {
	lock := adapter.Must(adapter.NewLock(self, "Middleware", l, key, opts))
	onError, _ := errorHandler.Value(lock.Locker())

	return func(c *gin.Context) {
		entry, err := lock.Enter(c.Request.Context(), c)
		defer entry.Leave()
		if err != nil {
			onError.refuse(c, err, entry)
			return
		}
		before := stateOf(c)
		serve(c, entry)
		if loss := before.lossOf(entry.Context(), c); loss != nil {
			before.answerLoss(c, loss, entry)
		}
	}
}

// serve runs the handlers behind a middleware.
func serve(c *gin.Context, entry adapter.Entry) {
	r := c.Request
	defer restore(c, r)
	if _, bound := boundBody(c); bound { // the body was read
		c.Request = r.WithContext(entry.Context())
	} else {
		c.Request = entry.Request(r)
	}
	c.Next()
	entry.Returned()
}

// restore sets the request of c to the one from before the lock: code that runs after
// the lock must not get a context that ended with the lease. It copies the form that
// a handler has parsed.
func restore(c *gin.Context, r *http.Request) {
	adapter.CopyForm(c.Request, r)
	c.Request = r
}

// A state is what c has before its handlers run. A middleware behind may leave another writer in
// c, which must not be used any more.
type state struct {
	writer   gin.ResponseWriter
	encoding []string
	failures int
}

// contentEncoding is the name of the header of a middleware that compresses.
const contentEncoding = "Content-Encoding"

func stateOf(c *gin.Context) state {
	return state{c.Writer, c.Writer.Header()[contentEncoding], len(c.Errors)}
}

// lossOf is adapter.LossOf for the last error that the handlers have added to c, if Gin would
// send an empty 200. ctx is the context of the lease.
func (s state) lossOf(ctx context.Context, c *gin.Context) error {
	if s.writer.Written() || s.writer.Status() != http.StatusOK {
		return nil
	}
	var left error
	if len(c.Errors) > s.failures {
		left = c.Errors.Last().Err
	}
	return adapter.LossOf(ctx, left, 0)
}

// answerLoss answers for handlers that have given no answer because the lock was lost. Behind an
// Idempotent, that one answers, for which the loss is the last one of c.Errors.
func (s state) answerLoss(c *gin.Context, loss error, entry adapter.Entry) {
	c.Errors = append(c.Errors, &gin.Error{Err: loss, Type: gin.ErrorTypePrivate})
	if entry.IsInside() {
		return
	}
	delete(s.writer.Header(), contentEncoding) // of a middleware behind, whose writer is gone
	if s.encoding != nil {
		s.writer.Header()[contentEncoding] = s.encoding
	}
	adapter.WriteRefusal(s.writer, loss)
}

// A *gin.Context has the values of its request only if its engine has ContextWithFallback. core finds
// the lease and the attempt of the request in any *gin.Context, and in contexts that are derived
// from one.
func init() { //nolint:gochecknoinits // see adapter.UnwrapContext
	adapter.UnwrapContext(func(ctx context.Context) (request context.Context, ok bool) {
		c, ok := ctx.Value(gin.ContextKey).(*gin.Context)
		if !ok || c.Request == nil { // as in a context of gin.CreateTestContext
			return nil, false
		}
		return c.Request.Context(), true
	})
}
