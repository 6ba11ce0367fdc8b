package echolock

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
)

// Idempotent runs a request once for its key. A copy that arrives after the request
// has ended gets the first answer. A copy that arrives earlier is refused, or waits
// with core.WithWait. See the package comment on idempotent endpoints.
//
//	e.POST("/payments", pay, auth, echolock.Idempotent(locks, core.Join(echolock.Get("user_id"), echolock.IdempotencyKey())))
//
// Idempotent applies to POST and PATCH: see core.WithMethods. The same key with another
// path, query, media type or body is refused with core.ErrMismatch: see
// core.WithFingerprint. A request without a key is refused: see core.WithOptionalKey. The keys
// of two routes are independent. The route is c.Path, or the path of the URL if
// c.Path is empty. A prefix that http.StripPrefix has removed belongs to the route
// too, and for the routes of Echo.Host the host.
//
// The handler's answer is first stored in Redis, and then sent. Until then a recorder
// buffers it; the recorder is the Writer of c.Response(). The handler finds the
// lease and the attempt in its request's context: see core.AttemptFromContext. With the
// attempt it can decide what is stored.
// The handler goes on if its client disconnects: see core.WithClientCancel.
//
// An error that the handler returns is rendered at once, by the application's
// HTTPErrorHandler, so that its answer is kept as well; Idempotent then returns nil,
// and those outside see the answer and no error. An error that says that the
// request's context has ended is returned to them, and so is a refusal, as that only
// for Middleware.
//
// Idempotent panics where Middleware does, for a key of core.All or with Permits, Shared or
// SharedWhen, and for a Locker that runs requests without Redis (core.WithFailOpen), shares
// its locks (core.WithPermits and core.WithShared) or is from core.NewQuorum. The middleware
// is safe for concurrent use.
func Idempotent(l *core.Locker, key Key, opts ...core.Option) echo.MiddlewareFunc {
	endpoint := adapter.Must(httpattempt.New(self, l, key, readBody, opts))
	onError := errorHandlerOf(endpoint.Locker())

	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) (left error) {
			pass := httpattempt.Enter(c.Request().Context())
			defer pass.Leave()
			if pass != nil {
				defer restore(c, c.Request())
				c.SetRequest(c.Request().WithContext(pass))
			}
			exchange, refusal := endpoint.Begin(c.Request(), c, c.Path(), routeOf(c))
			if refusal == nil || errors.Is(refusal, core.ErrSkip) {
				pass.Run()
				left = serve(c, exchange, next)
				pass.Returned(context.Cause(c.Request().Context()))
				pass.Leave()
				refusal = exchange.CutOff()
			}
			if refusal != nil {
				return refuse(c, refusal, onError, pass)
			}
			return left
		}
	}
}

// serve serves a request that is not refused. exchange is nil if it runs as without Idempotent.
// The error is for the middlewares outside.
func serve(c echo.Context, exchange *httpattempt.Exchange, next echo.HandlerFunc) error {
	endRefusal(c)
	switch {
	case exchange == nil:
		return next(c)
	case exchange.Replayed():
		exchange.Replay(c.Response())
		return nil
	}
	return run(c, exchange, next)
}

// run runs the handler. If the handler does not return and no part of its answer was
// sent, run resets c.Response(), so that a middleware outside can answer. The error is that of
// serve.
func run(c echo.Context, exchange *httpattempt.Exchange, next echo.HandlerFunc) (left error) {
	request, response := c.Request(), c.Response()
	before := *response
	exchange.Run(response.Writer, request, func(recorder *httpattempt.Recorder, running *http.Request) {
		returned := false
		defer func() {
			restore(c, request)
			response.Writer = before.Writer
			if !returned && !recorder.PassedThrough() {
				response.Status, response.Size, response.Committed = before.Status, before.Size, before.Committed
			}
		}()
		c.SetRequest(running)
		response.Writer = recorder
		err := next(c)
		exchange.Return(err, statusIn(err))
		noteMessages(exchange, err)
		switch {
		case err == nil:
		case lossOf(context.Cause(running.Context()), err) != nil:
			exchange.Lose()
		case httpattempt.IsContextEnd(err) && running.Context().Err() != nil:
			left = err // a middleware that ends the context, such as Echo's ContextTimeout, answers
			exchange.Fail(0)
		default:
			c.Error(err)
			exchange.Fail(failureIn(err)) // no effect if the error was rendered
		}
		returned = true
	})
	return left
}

// noteMessages reports the errors that the handler has given to its framework as the Message of an
// HTTPError, which does not unwrap to it.
func noteMessages(exchange *httpattempt.Exchange, err error) {
	for ; err != nil; err = errors.Unwrap(err) {
		if own, is := err.(*echo.HTTPError); is { //nolint:errorlint // the chain is walked here
			if message, is := own.Message.(error); is {
				exchange.NoteTimeout(message)
			}
		}
	}
}

// statusIn returns the status of Echo's own error in err, or 0 if there is none.
func statusIn(err error) int {
	var own *echo.HTTPError
	if errors.As(err, &own) {
		return own.Code
	}
	return 0
}

// failureIn returns the status of Echo's own error in err, or 0 if there is none or it is that
// of no failure.
func failureIn(err error) int {
	if status := statusIn(err); status >= http.StatusBadRequest {
		return status
	}
	return 0
}

// routeOf returns the route of a request. It begins with the host if the host has its
// own routes.
func routeOf(c echo.Context) string {
	r := c.Request()
	route := httpattempt.RouteOf(r, c.Path())
	if _, own := c.Echo().Routers()[r.Host]; own {
		return r.Host + route
	}
	return route
}
