package echov5lock

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// Idempotent runs a request once for its key. A copy that arrives after the request
// has ended gets the first answer, with the header "Idempotent-Replayed: true". A copy that
// arrives earlier is refused, or waits with core.WithWait. See the package comment on
// idempotent endpoints.
//
//	e.POST("/payments", pay, auth, echov5lock.Idempotent(locks, core.Join(echov5lock.Get("user_id"), echov5lock.IdempotencyKey())))
//
// Idempotent applies to POST and PATCH: see core.WithMethods. The same key with another
// path, query, media type or body is refused with core.ErrMismatch: see
// core.WithFingerprint. A request without a key is refused: see core.WithOptionalKey. The keys
// of two routes are independent. The route is c.Path, or the path of the URL if
// c.Path is empty. A prefix that http.StripPrefix has removed belongs to the route
// too. The host does not: join the key with Host for echo.NewVirtualHostHandler.
//
// The handler's answer is first stored in Redis, and then sent. Until then a recorder
// buffers it, behind an *echo.Response of its own. The handler finds the
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
// Idempotent panics where Middleware does. It also panics for a key of core.All or with
// Permits, Shared or SharedWhen, and for a Locker that runs requests without Redis
// (core.WithFailOpen), shares its locks (core.WithPermits and core.WithShared) or is from
// core.NewQuorum. The middleware is safe for concurrent use.
func Idempotent(l *core.Locker, key Key, opts ...core.Option) echo.MiddlewareFunc {
	once := adapter.Must(adapter.NewIdempotentHTTP(self, "Idempotent", l, key, accessors(), opts))
	onError, _ := errorHandler.Value(once.Locker())

	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) (left error) {
			watched := watchAnswer(c)
			defer watched.end(c)
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
				return refuse(c, refusal, onError, entry, watched)
			}
			return left
		}
	}
}

// accessors returns how the requests are read.
func accessors() adapter.Accessors[*echo.Context] {
	a := adapter.NetHTTP((*echo.Context).Request, (*echo.Context).Path)
	a.Body = readBody
	return a
}

// run runs the handler. left is the error for the middlewares outside, and refusal that of the
// Exchange.
func run(c *echo.Context, exchange *adapter.Exchange, next echo.HandlerFunc) (left, refusal error) {
	request, outer := c.Request(), c.Response()
	refusal = exchange.Run(sender{outer}, request, func(recorder *adapter.Recorder, running *http.Request) {
		defer restore(c, request)
		defer c.SetResponse(outer)
		recorded := echo.NewResponse(recorder, c.Logger())
		recorded.Status = responseOf(c).Status
		c.SetRequest(running)
		c.SetResponse(recorded)
		err := next(c)
		switch renders := exchange.SetReturned(err, echo.StatusCode(err)); {
		case !renders:
		case errors.Is(err, running.Context().Err()):
			left = err // a middleware that ends the context, such as Echo's ContextTimeout, answers
			exchange.SetFailed(0)
		default:
			c.Echo().HTTPErrorHandler(c, err)
			exchange.SetFailed(echo.StatusCode(err)) // no effect if the error was rendered
		}
	})
	return left, refusal
}
