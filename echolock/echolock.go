package echolock

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
	"github.com/reqlock/reqlock/internal/adapter/httpkey"
	"github.com/reqlock/reqlock/internal/adapter/httpreply"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// A KeyFunc reads the lock key from a request. Functions of this package, functions
// of core and your own functions can be combined:
//
//	core.Named("account", echolock.Param("id"))
//
// A function of your own that returns a string is accepted as well. core.Func converts it
// where it stands beside other key functions, as in core.First or Also, and in a Config.
type KeyFunc = core.KeyFunc[echo.Context]

// Middleware runs the requests of a handler under a lock. Give it to a route after
// its handler, to a Group, or to Use. key chooses the lock: requests with the same
// key run one at a time, in all processes that use the same Redis. The options are
// options of core, which are passed to l.With, and options of this package.
//
// Without core.WithWait a request is refused at once if another request holds its
// lock: the middleware returns the error that WriteError describes, for the
// application's HTTPErrorHandler. Otherwise the handler finds the lease with
// FromContext, and in its request's context, which is cancelled if the lease is lost.
// The lock is freed when the handler returns, panics or ends its goroutine, and not
// before, even if the client disconnects. If the lock is lost and the handler gives no
// answer, the client gets lease_lost of core.RefusalOf instead of an empty 200: answers that
// do not go through c.Response() are not seen. c.Response() is not replaced. After the
// lock, c.Request() is the request from before the lock again.
//
// Middleware panics if l or key is nil, or if an option is invalid or belongs to
// another adapter. The middleware is safe for concurrent use.
func Middleware[K string | core.RequestKey](l *core.Locker, key func(echo.Context) (K, error), opts ...Option) echo.MiddlewareFunc {
	o := &options{}
	config := Config{Locker: l, Key: keyFuncOf(key), Options: registration.Apply(adapter, o, opts)}
	adapter.Must(o.idempotent == "", o.idempotent+" is an option of Idempotent, not of Middleware")
	config.Also, config.ErrorHandler = o.also, o.errorHandler
	return MiddlewareWithConfig(config)
}

// MiddlewareWithConfig is Middleware with a Config. It panics if config.ToMiddleware
// returns an error.
func MiddlewareWithConfig(config Config) echo.MiddlewareFunc {
	middleware, err := config.ToMiddleware()
	if err != nil {
		panic(err)
	}
	return middleware
}

// ToMiddleware returns the middleware, or an error that names the invalid setting.
func (config Config) ToMiddleware() (echo.MiddlewareFunc, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	if err := adapter.CheckScope("Middleware", false, config.Options); err != nil {
		return nil, err
	}
	if err := config.Locker.CheckOptions(config.Options...); err != nil {
		return nil, err
	}
	l := config.Locker.With(config.Options...)
	keys := append([]KeyFunc{config.Key}, config.Also...)
	if err := httpkey.CheckSharedReads(adapter, l, keys); err != nil {
		return nil, err
	}
	wait, mistakes := httpreply.NewWaitCheck(adapter, l), httpkey.NewMistakeCheck(adapter, l)

	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if config.Skipper(c) {
				return runUnlocked(c, next)
			}
			r := c.Request()
			wait.Check(r)
			pass := httpattempt.Enter(r.Context())
			defer pass.Leave()
			ctx, release, err := core.Enter(pass.Inside(r.Context()), l, c, keys...)
			if err != nil {
				mistakes.Check(err)
				return refuse(c, err, config.ErrorHandler, pass)
			}
			defer release()
			pass.Run()
			wait.CheckBody(r)
			endRefusal(c)
			defer restore(c, r)
			c.SetRequest(r.WithContext(ctx))
			response := c.Response()
			err = next(c)
			ended := context.Cause(ctx)
			pass.Returned(ended)
			return answerLoss(ended, c, response, err, pass)
		}
	}, nil
}

// runUnlocked runs a request as without the middleware. An Idempotent outside learns that it has
// run.
func runUnlocked(c echo.Context, next echo.HandlerFunc) error {
	r := c.Request()
	pass := httpattempt.Enter(r.Context())
	if pass == nil {
		return next(c)
	}
	defer pass.Leave()
	defer restore(c, r)
	c.SetRequest(r.WithContext(pass))
	pass.Run()
	err := next(c)
	pass.Returned(context.Cause(r.Context()))
	return err
}

// restore sets the request of c to the one from before the lock: code that runs after
// the lock, and Echo's HTTPErrorHandler, must not get a context that ended with the
// lease. It copies the form that a handler has parsed.
func restore(c echo.Context, r *http.Request) {
	httpkey.CopyParsedForm(c.Request(), r)
	c.SetRequest(r)
}

// FromContext returns the lease under which a request runs, and false if there is
// none. If a middleware locks several keys, it is the lease of the first key.
func FromContext(c echo.Context) (*core.Lease, bool) {
	if c.Request() == nil { // as in a context of e.AcquireContext
		return nil, false
	}
	return core.LeaseFromContext(c.Request().Context())
}

// Leases returns the leases of all keys under which a request runs: one entry for each key
// function of the innermost Middleware, in the order of registration. It is nil for a key
// function that returned core.ErrSkip. See core.LeasesFromContext.
func Leases(c echo.Context) []*core.Lease {
	if c.Request() == nil {
		return nil
	}
	return core.LeasesFromContext(c.Request().Context())
}
