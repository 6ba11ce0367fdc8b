package echolock

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpkey"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// A KeyFunc reads the lock key from a request. Functions of this package and
// of core, and plain functions, go together:
//
//	core.Named("account", echolock.Param("id"))
type KeyFunc = core.KeyFunc[echo.Context]

// Middleware runs the requests of a handler under a lock. Give it to a route
// after its handler, to a Group, or to Use. key says which lock; requests with
// the same key run one at a time, in all processes that use the same Redis. The
// options are those of core, which are given to l.With, and those of this
// package.
//
// Without core.WithWait a request whose lock is held by another is refused at
// once: the error that WriteError describes is returned, for the application's
// HTTPErrorHandler. Else the handler finds the lease with FromContext, and in
// its request's context, which is cancelled if the lease is lost. The lock is
// freed when the handler returns, panics or ends its goroutine, and not before:
// not when its client has gone. c.Response() is what it was before, and those
// outside the lock get their c.Request() back.
//
// Middleware panics if l or key is nil, or an option is bad or another
// adapter's. What it returns is safe for concurrent use.
func Middleware(l *core.Locker, key KeyFunc, opts ...Option) echo.MiddlewareFunc {
	o := &options{}
	config := Config{Locker: l, Key: key, Options: registration.Apply(adapter, o, opts)}
	adapter.Must(o.idempotent == "", o.idempotent+" is an option of Idempotent, not of Middleware")
	config.Also, config.ErrorHandler = o.also, o.errorHandler
	return MiddlewareWithConfig(config)
}

// MiddlewareWithConfig is Middleware with its settings in one place. It panics
// where config.ToMiddleware returns an error.
func MiddlewareWithConfig(config Config) echo.MiddlewareFunc {
	middleware, err := config.ToMiddleware()
	if err != nil {
		panic(err)
	}
	return middleware
}

// ToMiddleware returns the middleware, or an error that says what is wrong with
// the configuration.
func (config Config) ToMiddleware() (echo.MiddlewareFunc, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	l, err := view(config.Locker, config.Options)
	if err != nil {
		return nil, err
	}
	keys := append([]KeyFunc{config.Key}, config.Also...)

	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if config.Skipper(c) {
				return next(c)
			}
			r := c.Request()
			ctx, release, err := core.Enter(r.Context(), l, c, keys...)
			if err != nil {
				return refuse(c, err, config.ErrorHandler)
			}
			defer release()
			endRefusal(c)
			defer restore(c, r)
			c.SetRequest(r.WithContext(ctx))
			return next(c)
		}
	}, nil
}

// restore gives c the request back that it had before the lock, so that what
// runs after it, and Echo's HTTPErrorHandler, do not find a context that ended
// with the lease. The form that a handler has parsed goes along.
func restore(c echo.Context, r *http.Request) {
	httpkey.HandUp(c.Request(), r)
	c.SetRequest(r)
}

// FromContext returns the lease under which a request runs, and false if it
// runs without one. For the several keys of one request it is the lease of the
// middleware's first key.
func FromContext(c echo.Context) (*core.Lease, bool) {
	if c.Request() == nil { // as in a context of e.AcquireContext
		return nil, false
	}
	return core.FromContext(c.Request().Context())
}
