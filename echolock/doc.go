// Package echolock runs the requests of Echo (v4) handlers under a lock in Redis.
// Requests with the same key run one at a time, in all processes of a service.
//
//	locks := core.Must(core.New(rdb))
//	oneAtATime := echolock.Middleware(locks,
//		echolock.Param("id").Named("account"), core.WithWait(2*time.Second))
//
//	e.POST("/accounts/:id/transfer", transfer, auth, oneAtATime)
//
// [Getting started] has a whole program, for Echo v5 and package echov5lock, which has the same
// names. Key.When is what other middlewares of Echo have as a Skipper.
//
// The middleware reads the key from the request, takes the lock, runs the handler, and
// frees the lock when the handler returns. If a request does not get its lock, its
// handler does not run, and the middleware refuses the request: 409 if another request
// holds the lock, 503 if Redis is unavailable, 400 if the request has no usable key.
//
// If the lock is lost while the handler runs, the context of its request is cancelled
// with the cause core.ErrLost, and the handler's answer is sent unchanged.
//
// # Refusals
//
// A refusal is an *echo.HTTPError that the middleware returns, so the application's
// HTTPErrorHandler renders it. Echo's default HTTPErrorHandler sends a problem document.
// The Code is the status, the Message is a short string such as "busy", and errors.Is
// finds the cause. reqlock does not check what an HTTPErrorHandler sends: if it sends a
// 200 or nothing at all, the client gets that. [Errors] has all codes.
//
// When the handler has ended, c.Request() is the request from before the lock again, for
// the middlewares outside and the HTTPErrorHandler.
//
// # Keys
//
// A client that can choose the key can block the requests of others. Take the key from
// the authenticated user (Get, GetAs), or from a resource in the path that the user is
// allowed to use. With a key from a header, a query or a body alone, any client can lock
// the key of any other client.
//
// The key is the whole name of the lock: account 42 and user 42 have the same lock.
// Key.Named keeps them apart. If a function of core.KeyOf returns an *echo.HTTPError,
// such as echo.ErrUnauthorized, the answer has its code and message. See [keys].
//
// # Where to put it
//
// Every middleware that can refuse a request, authentication first, belongs before the
// lock. Middlewares of a route come last, in the order in which they are written. Use
// ContextTimeout and not Echo's deprecated Timeout, which returns while the handler still
// runs. See [the order of middlewares].
//
// Give the lock to routes where you can. Under e.Use, and in a Group without the parameter
// in its path, the lock also runs for unknown paths, where a Param is empty, which is 400
// instead of 404. Limit it to routes with the parameter:
//
//	hasID := func(c echo.Context) bool { return slices.Contains(c.ParamNames(), "id") }
//	e.Use(echolock.Middleware(locks, echolock.Param("id").Named("account").When(hasID)))
//
// Do not use e.Pre: it runs before authentication, and no route has parameters yet.
//
// # Idempotent endpoints
//
// A client that got no answer sends its request again, with the same Idempotency-Key.
// Idempotent then repeats the first answer, and the handler does not run again:
//
//	paid := echolock.Idempotent(locks, core.Join(echolock.Get("user_id"), echolock.IdempotencyKey()))
//	e.POST("/payments", pay, auth, paid)
//
// Join the key with the user. Clients choose their keys, and without the user one client
// could get the answer of another.
//
// This is not "exactly once". The answer decides what a copy gets, unless the handler says
// otherwise by Attempt.Decide, or the options core.WithUnknown and core.WithStored do:
//
//   - 401, 403, 408, 409, 423, 425, 429, 501, 503 and 511 free the key: a copy runs.
//   - 2xx, 3xx and all other 4xx except 499 are stored: a copy gets the answer.
//   - 499, all others from 500, a panic and a crash leave the outcome unknown: copies are
//     refused.
//
// So a handler that calls another service and times out must not answer 503, unless it
// calls Attempt.Decide with core.EndUnknown or returns the error of its context: the
// service may have acted, and a copy acts again. Any other error that the handler
// returns is rendered at once, and its answer counts by its status. See
// [idempotent endpoints], [copies and stored answers] and [unknown outcomes].
//
// # What to know
//
// net/http detects that a client has disconnected only after the request's body was read
// to its end. So keep [waits] short, or read the body before the lock. The lock ends with
// the handler, not with the answer or the client. Code that locks through a second Locker
// waits for its own request: see "Deadlocks" in the comment of package core.
//
// [Getting started]: https://github.com/reqlock/reqlock/blob/main/docs/getting-started.md#echo
// [Errors]: https://github.com/reqlock/reqlock/blob/main/docs/errors.md#all-refusals
// [keys]: https://github.com/reqlock/reqlock/blob/main/docs/keys.md
// [the order of middlewares]: https://github.com/reqlock/reqlock/blob/main/docs/middleware-order.md#echo
// [idempotent endpoints]: https://github.com/reqlock/reqlock/blob/main/docs/idempotency.md
// [copies and stored answers]: https://github.com/reqlock/reqlock/blob/main/docs/replays.md
// [unknown outcomes]: https://github.com/reqlock/reqlock/blob/main/docs/unknown-outcomes.md
// [waits]: https://github.com/reqlock/reqlock/blob/main/docs/waiting.md
package echolock
