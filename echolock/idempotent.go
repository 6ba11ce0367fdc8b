package echolock

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// Idempotent runs a request once for its key: a copy of it that comes later gets
// the first one's answer, and one that comes meanwhile is refused, or waits with
// core.WithWait. See the package comment on idempotent endpoints.
//
//	e.POST("/payments", pay, auth, echolock.Idempotent(locks, core.Join(echolock.Get("user_id"), echolock.IdempotencyKey())))
//
// It is for POST and PATCH: see WithMethods. The same key with another path,
// query, media type or body is refused with core.ErrMismatch: see WithFingerprint. A request
// without key is refused, or see WithOptionalKey. The keys of two routes have
// nothing to do with each other: a route is what c.Path says, or the URL's path
// where that is empty, behind what http.StripPrefix has cut off, and behind the
// host for those of Echo.Host.
//
// The handler's answer is kept in Redis, and only then sent. Until then a
// recorder holds it, which is the Writer of c.Response(). The handler finds the
// lease with FromContext, and its attempt with AttemptFromContext, which lets it
// decide by itself what is kept.
//
// An error that the handler returns is rendered at once, by the application's
// HTTPErrorHandler, so that its answer is kept as well; Idempotent then returns
// nil, and those outside see the answer and no error. An error that says that the
// request's context has ended is returned to them, and so is a refusal, as that of
// Middleware.
//
// Idempotent panics where Middleware does, and with a Locker that runs requests
// without Redis (core.WithFailOpen), or is one of core.NewQuorum. What it returns is
// safe for concurrent use.
func Idempotent(l *core.Locker, key KeyFunc, opts ...Option) echo.MiddlewareFunc {
	o := &options{}
	config := IdempotentConfig{Locker: l, Key: key, Options: registration.Apply(adapter, o, opts)}
	adapter.Must(len(o.also) == 0, "Also is an option of Middleware: put a Middleware behind Idempotent")
	config.ErrorHandler = o.errorHandler
	config.Methods, config.OptionalKey = o.settings.Methods, o.settings.OptionalKey
	config.Fingerprint, config.MaxBody = o.settings.Fingerprint, o.settings.MaxBody
	config.Stored, config.ReplayedHeaders = o.settings.Stored, o.settings.ReplayedHeaders
	return IdempotentWithConfig(config)
}

// IdempotentWithConfig is Idempotent with its settings in one place. It panics
// where config.ToMiddleware returns an error.
func IdempotentWithConfig(config IdempotentConfig) echo.MiddlewareFunc {
	middleware, err := config.ToMiddleware()
	if err != nil {
		panic(err)
	}
	return middleware
}

// ToMiddleware returns the middleware, or an error that says what is wrong with
// the configuration.
func (config IdempotentConfig) ToMiddleware() (echo.MiddlewareFunc, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	l, err := view(config.Locker, config.Options)
	if err != nil {
		return nil, err
	}
	endpoint, err := httpattempt.New(adapter, l, config.Key, readBody, config.settings())
	if err != nil {
		return nil, err
	}

	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if config.Skipper(c) {
				return next(c)
			}
			exchange, err := endpoint.Begin(c.Request(), c, routeOf(c))
			switch {
			case errors.Is(err, core.ErrSkip):
				return next(c)
			case err != nil:
				return refuse(c, err, config.ErrorHandler)
			}
			endRefusal(c)
			if exchange.Replayed() {
				exchange.Replay(c.Response())
				return nil
			}
			return run(c, exchange, next)
		}
	}, nil
}

// run runs the handler. Of one that does not return, and of whose answer nothing
// was sent, c.Response() shows nothing: a middleware outside can answer. It returns
// the error that is left to one.
func run(c echo.Context, exchange *httpattempt.Exchange, next echo.HandlerFunc) (left error) {
	request, response := c.Request(), c.Response()
	before := *response
	exchange.Run(response.Writer, request, func(recorder *httpattempt.Recorder, running *http.Request) {
		returned := false
		defer func() {
			restore(c, request)
			response.Writer = before.Writer
			if !returned && !recorder.Passing() {
				response.Status, response.Size, response.Committed = before.Status, before.Size, before.Committed
			}
		}()
		c.SetRequest(running)
		response.Writer = recorder
		err := next(c)
		switch {
		case err == nil:
		case isEnd(err) && running.Context().Err() != nil:
			left = err
			exchange.Fail()
		default:
			c.Error(err)
			exchange.Fail() // unless there is an answer now
		}
		returned = true
	})
	return left
}

// isEnd reports whether an error says that a context has ended. A middleware that
// has ended it, as Echo's ContextTimeout, answers for it.
func isEnd(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// routeOf names the route of a request. That of a host with routes of its own
// begins with the host.
func routeOf(c echo.Context) string {
	r := c.Request()
	route := httpattempt.RouteOf(r, c.Path())
	if _, own := c.Echo().Routers()[r.Host]; own {
		return r.Host + route
	}
	return route
}

// AttemptFromContext returns the attempt under which the handler of an Idempotent
// runs, and false if it runs without one:
//
//	if attempt, ok := echolock.AttemptFromContext(c); ok {
//		attempt.Decide(core.Uncertain)
//	}
func AttemptFromContext(c echo.Context) (*core.Attempt, bool) {
	if c.Request() == nil {
		return nil, false
	}
	return core.AttemptFromContext(c.Request().Context())
}
