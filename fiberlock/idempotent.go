package fiberlock

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/gofiber/fiber/v3"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// Idempotent runs a request once for its key. A copy that arrives after the request
// has ended gets the first answer, with the header "Idempotent-Replayed: true". A copy that
// arrives earlier is refused, or waits with core.WithWait. See the package comment on
// idempotent endpoints.
//
//	app.Post("/payments", auth, fiberlock.Idempotent(locks, core.Join(fiberlock.Locals("user_id"), fiberlock.IdempotencyKey())), pay)
//
// Idempotent applies to POST and PATCH: see core.WithMethods. The same key with another
// path, query, media type or body is refused with core.ErrMismatch: see
// core.WithFingerprint. A request without a key is refused: see core.WithOptionalKey. The keys
// of two routes are independent. The route is c.FullPath. Routes with the same path on several hosts
// (app.Domain of later versions of Fiber) share their keys: join the key with Host.
//
// Give Idempotent to routes. In app.Use and in a group, Fiber does not know the route yet, so
// Idempotent refuses each request with 500, and the observers get one core.Warned event.
//
// The handler's answer is first stored in Redis, and then sent. The handler finds the
// lease and the attempt in c.Context(): see core.AttemptFromContext. With the
// attempt it can decide what is stored. Fiber does not detect that a client has disconnected, so
// core.WithClientCancel has an effect only on deadlines that a middleware has set by c.SetContext.
//
// An error that the handlers return is rendered at once, by the application's ErrorHandler, so that
// its answer is kept as well; Idempotent then returns nil, and the middlewares outside see the answer
// and no error. A stream, such as that of c.SendStreamWriter, c.SendStream and c.SendFile, and a
// connection that is taken over are not stored: copies get core.ErrUnreplayable. After c.Drop copies get
// what the handler has set, or an empty 200: let it return an error instead.
//
// If Fiber's timeout middleware answers, the outcome is unknown, wherever it stands: the middleware
// and the handler write to one answer. Set the deadlines of what the handler calls instead.
//
// Idempotent panics where Middleware does. It also panics for a key of core.All or with
// Permits, Shared or SharedWhen, and for a Locker that runs requests without Redis
// (core.WithFailOpen), shares its locks (core.WithPermits and core.WithShared) or is from
// core.NewQuorum. The middleware is safe for concurrent use.
func Idempotent(l *core.Locker, key Key, opts ...core.Option) fiber.Handler {
	once := adapter.Must(adapter.NewIdempotentHTTP(self, "Idempotent", l, key, accessors(), opts))
	onError, _ := errorHandler.Value(once.Locker())
	var known routes

	return func(c fiber.Ctx) error {
		if !known.have(c) {
			adapter.Warn(once.Locker(), misplaced{c.FullPath()}, errMisplaced)
			return WriteError(c, errMisplaced)
		}
		entry, exchange, err := once.Begin(c.Context(), c)
		defer entry.Leave()
		switch {
		case err != nil:
		case exchange == nil:
			return serve(c, entry)
		case exchange.Replayed():
			exchange.Replay(newWriter(c))
			return nil
		default:
			var left error
			if left, err = run(c, entry, exchange); err == nil {
				return left
			}
		}
		return onError.refuse(c, err, entry)
	}
}

// A misplaced is an Idempotent in app.Use or a group with the path.
type misplaced struct{ path string }

var errMisplaced = self.Errorf("Idempotent stands in app.Use or a group, where Fiber does not know the route yet: " +
	"give it to the route, as in app.Post(path, fiberlock.Idempotent(...), handler)")

// routes tells the routes of an application from app.Use and groups: c.Matched is true behind a route that
// goes on. It is safe for concurrent use.
type routes struct{ known sync.Map } // the keys are the first handlers

// have reports whether the running handler belongs to a route.
func (r *routes) have(c fiber.Ctx) bool {
	handlers := c.Route().Handlers
	if len(handlers) == 0 { // c is not of a server
		return false
	}
	first := &handlers[0] // which copies of a route share
	is, known := r.known.Load(first)
	if !known {
		is = slices.ContainsFunc(c.App().GetRoutes(true), func(route fiber.Route) bool { return &route.Handlers[0] == first })
		r.known.Store(first, is)
	}
	return is == true
}

// accessors returns how the requests are read.
func accessors() adapter.Accessors[fiber.Ctx] {
	return adapter.Accessors[fiber.Ctx]{
		Method:  func(c fiber.Ctx) string { return c.Method() },
		Pattern: fiber.Ctx.FullPath,
		Route:   fiber.Ctx.FullPath,
		Path:    func(c fiber.Ctx) string { return string(c.Request().URI().PathOriginal()) },
		Query:   queryOf,
		Header:  valuesOf,
		Body:    readBody,
	}
}

// run runs the handlers behind the middleware. left is the error for the middlewares outside, and
// refusal that of the Exchange. If there is no answer of the handlers, c has what it had before.
func run(c fiber.Ctx, entry adapter.Entry, exchange *adapter.Exchange) (left, refusal error) {
	outer, status, header := c.Context(), c.Response().StatusCode(), headerOf(c)
	answered := false
	defer func() {
		if !answered && !c.IsAbandoned() {
			setAnswer(c, status, header)
		}
	}()
	refusal = exchange.RunAnswer(entry.Context(), header, func(ctx context.Context) adapter.HTTPAnswer {
		returned := false
		defer func() {
			setContext(outer, c)
			if !returned && !c.IsAbandoned() && hasAnswer(c) {
				exchange.SetStatus(c.Response().StatusCode())
			}
		}()
		setContext(ctx, c)
		err := c.Next()
		returned = true
		switch renders := exchange.SetReturned(err, statusIn(err)); {
		case c.IsAbandoned(): // the handlers may still run, and what c has may be of the timeout middleware
			left = err
			exchange.SetLost()
			exchange.SetFailed(0)
			return adapter.HTTPAnswer{}
		case renders:
			render(c, err, exchange)
		case err != nil: // the lease is lost
			return adapter.HTTPAnswer{}
		}
		return answerOf(c, exchange)
	})
	answered = refusal == nil
	return left, refusal
}

// render lets the application's ErrorHandler answer for handlers that have returned err, as Fiber does.
func render(c fiber.Ctx, err error, exchange *adapter.Exchange) {
	if failed := c.App().ErrorHandler(c, withoutText(err)); failed != nil {
		_ = c.SendStatus(http.StatusInternalServerError) // which returns nil
	}
	if !hasAnswer(c) {
		exchange.SetFailed(statusIn(err))
	}
}

// answerOf returns the answer of the handlers, as far as c has it.
func answerOf(c fiber.Ctx, exchange *adapter.Exchange) adapter.HTTPAnswer {
	status := c.Response().StatusCode()
	if isSentLater(c) {
		exchange.SetSent(status)
	}
	return adapter.HTTPAnswer{Status: status, Header: headerOf(c), Body: bodyOf(c)}
}
