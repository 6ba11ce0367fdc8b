package echolock

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// Middleware runs the requests of a handler under a lock. Give it to a route after
// its handler, to a Group, or to Use. key chooses the lock: requests with the same
// key run one at a time, in all processes that use the same Redis. The options are
// options of core, which are passed to l.With, and options of this package.
//
// Without core.WithWait a request is refused at once if another request holds its
// lock: the middleware returns the error that WriteError describes, for the
// application's HTTPErrorHandler. Otherwise the handler finds the lease in its
// request's context (core.LeaseFromContext), which is cancelled if the lease is lost.
// The lock is freed when the handler returns, panics or ends its goroutine, and not
// before, even if the client disconnects. If the lock is lost and the handler gives no
// answer, the client gets lease_lost of core.RefusalOf instead of an empty 200: answers that
// do not go through c.Response() are not seen. c.Response() is not replaced. After the
// lock, c.Request() is the request from before the lock again.
//
// Middleware panics if l is nil or key is the zero Key, if an option is invalid, has no
// effect on its requests or belongs to another adapter, for a key of SharedWhen without
// core.WithWait above 0, and for Permits or Shared of a key with an option that excludes
// them: see core.WithPermits. The middleware is safe for concurrent use.
func Middleware(l *core.Locker, key Key, opts ...core.Option) echo.MiddlewareFunc {
	lock := adapter.Must(adapter.NewLock(self, "Middleware", l, key, opts))
	onError, _ := errorHandler.Value(lock.Locker())

	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			entry, err := lock.Enter(c.Request().Context(), c)
			defer entry.Leave()
			if err != nil {
				return refuse(c, err, onError, entry)
			}
			response := c.Response()
			err = serve(c, entry, next)
			return answerLoss(c, response, err, entry)
		}
	}
}

// serve serves a request that has entered a middleware.
func serve(c echo.Context, entry adapter.Entry, next echo.HandlerFunc) error {
	endRefusal(c)
	r := c.Request()
	defer restore(c, r)
	c.SetRequest(entry.Request(r))
	err := next(c)
	entry.Returned()
	return err
}

// restore sets the request of c to the one from before the lock: code that runs after
// the lock, and Echo's HTTPErrorHandler, must not get a context that ended with the
// lease. It copies the form that a handler has parsed.
func restore(c echo.Context, r *http.Request) {
	adapter.CopyForm(c.Request(), r)
	c.SetRequest(r)
}

// answerLoss returns the error for a request whose handler has returned err. If the handler has
// given no answer because the lock was lost, it is the one that WriteError makes of the loss:
// Echo would send an empty 200.
//
// The handler has the server's own writer. So an answer counts only if it was given by
// c.Response(), the one before the handler or another one, or to a WebSocket. Behind an
// Idempotent, that one answers.
func answerLoss(c echo.Context, response *echo.Response, err error, entry adapter.Entry) error {
	loss := adapter.LossOf(entry.Context(), err, statusIn(err))
	switch {
	case loss == nil, response.Committed, c.Response().Committed, c.IsWebSocket():
		return err
	case entry.IsInside():
		return loss
	}
	return WriteError(c, loss)
}
