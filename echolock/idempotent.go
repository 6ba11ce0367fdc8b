package echolock

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// Idempotent runs a request once for its key. A copy that arrives after the request
// has ended gets the first answer, with the header "Idempotent-Replayed: true". A copy that
// arrives earlier is refused, or waits with core.WithWait. See the package comment on
// idempotent endpoints.
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
// and the middlewares outside see the answer and no error. Exceptions: Idempotent returns
// an error that says that the request's context has ended, and the error of a refusal, as
// Middleware does.
//
// Do not put Echo's deprecated Timeout inside Idempotent: its 503 frees the key while the
// handler still runs, and a copy runs beside it, unless a Middleware stands inside the timeout.
//
// Idempotent panics where Middleware does. It also panics for a key of core.All or with
// Permits, Shared or SharedWhen, and for a Locker that runs requests without Redis
// (core.WithFailOpen), shares its locks (core.WithPermits and core.WithShared) or is from
// core.NewQuorum. The middleware is safe for concurrent use.
func Idempotent(l *core.Locker, key Key, opts ...core.Option) echo.MiddlewareFunc {
	once := adapter.Must(adapter.NewIdempotentHTTP(self, "Idempotent", l, key, accessors(), opts))
	onError, _ := errorHandler.Value(once.Locker())

	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) (left error) {
			entry, exchange, refusal := once.Begin(c.Request().Context(), c)
			defer entry.Leave()
			switch {
			case refusal != nil:
			case exchange == nil:
				return serve(c, entry, next)
			case exchange.Replayed():
				endRefusal(c)
				exchange.Replay(c.Response())
			default:
				endRefusal(c)
				left, refusal = run(c, exchange, next)
			}
			if refusal != nil {
				return refuse(c, refusal, onError, entry)
			}
			return left
		}
	}
}

// accessors returns how the requests are read.
func accessors() adapter.Accessors[echo.Context] {
	a := adapter.NetHTTP(echo.Context.Request, echo.Context.Path)
	a.Route, a.Body = routeOf, readBody
	return a
}

// run runs the handler. If no part of its answer is sent, because it does not return or the
// Exchange refuses the request, run resets c.Response(), so that the refusal or a middleware outside
// can answer. left is the error for the middlewares outside, and refusal that of the Exchange.
func run(c echo.Context, exchange *adapter.Exchange, next echo.HandlerFunc) (left, refusal error) {
	request, response := c.Request(), c.Response()
	before := *response
	reset := func() {
		response.Status, response.Size, response.Committed = before.Status, before.Size, before.Committed
	}
	refusal = exchange.Run(response.Writer, request, func(recorder *adapter.Recorder, running *http.Request) {
		returned := false
		defer func() {
			restore(c, request)
			response.Writer = before.Writer
			if !returned && !recorder.IsSent() {
				reset()
			}
		}()
		c.SetRequest(running)
		response.Writer = recorder
		err := next(c)
		noteMessages(exchange, err)
		switch renders := exchange.SetReturned(err, statusIn(err)); {
		case !renders:
		case errors.Is(err, running.Context().Err()):
			left = err // a middleware that ends the context, such as Echo's ContextTimeout, answers
			exchange.SetFailed(0)
		default:
			c.Error(err)
			exchange.SetFailed(statusIn(err)) // no effect if the error was rendered
		}
		returned = true
	})
	if refusal != nil {
		reset()
	}
	return left, refusal
}

// noteMessages reports the errors that the handler has given to its framework as the Message of an
// HTTPError, which does not unwrap to it.
func noteMessages(exchange *adapter.Exchange, err error) {
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

// routeOf returns the route of a request. It begins with the host if the host has its
// own routes.
func routeOf(c echo.Context) string {
	r := c.Request()
	route := adapter.Route(r, c.Path())
	if _, own := c.Echo().Routers()[r.Host]; own {
		return r.Host + route
	}
	return route
}
