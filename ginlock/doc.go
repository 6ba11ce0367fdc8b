// Package ginlock runs the requests of Gin handlers under a lock in Redis. Requests
// with the same key run one at a time, in all processes of a service.
//
//	locks := core.Must(core.New(rdb))
//	oneAtATime := ginlock.Middleware(locks,
//		ginlock.Param("id").Named("account"), core.WithWait(2*time.Second))
//
//	r.POST("/accounts/:id/transfer", auth, oneAtATime, transfer)
//
// The middleware is a plain gin.HandlerFunc, for a route, a group or the engine.
// [Getting started] has a whole program.
//
// The middleware reads the key from the request, takes the lock, runs the handlers behind
// it, and frees the lock when they return. If a request does not get its lock, the
// middleware aborts the chain and answers: 409 if another request holds the lock, 503 if
// Redis is unavailable, 400 if the request has no usable key. [Errors] has the whole
// table, and WithErrorHandler sets answers of your own. The error is also the last one of
// c.Errors, so a middleware that renders c.Errors should check c.Writer.Written first.
//
// # Which context
//
// Pass c.Request.Context() to what runs under the lock, such as queries and nested calls
// of core.Locker.Do. It is cancelled with the cause core.ErrLost if the lock is lost. c
// itself works as a context only if engine.ContextWithFallback is on. Without it, c does
// not carry the lease: core.Locker.Do with c and the same key returns
// core.ErrHiddenLease, since it would wait for its own request.
//
// A goroutine that outlives the handler runs without the lock, also with c.Copy().
//
// # Keys
//
// A client that can choose the key can block the requests of others. Take the key from
// the authenticated user (Get, GetAs), or from a resource in the path that the user is
// allowed to use. With a key from a header, a query or a body alone, any client can lock
// the key of any other client.
//
// The key is the whole name of the lock: account 42 and user 42 have the same lock.
// Key.Named keeps them apart. core.Getter makes a key of Gin's getters, as
// core.Getter((*gin.Context).FullPath). A function of core.KeyOf may answer by itself, as
// with c.AbortWithError, and return an error or no key. Then its answer is kept. See [keys].
//
// # Where to put it
//
// Every middleware that can refuse a request, authentication first, belongs before the
// lock. So does a timeout middleware that runs handlers in another goroutine, and
// http.TimeoutHandler: behind the lock, it frees the lock while the handler still runs.
// See [the order of middlewares].
//
// # Unknown routes
//
// The middlewares of an engine also run for unknown routes, where a Param is empty. That
// is 400 instead of 404, and other keys take a lock without need. To lock a whole engine,
// limit the lock to known routes:
//
//	isRoute := func(c *gin.Context) bool { return c.FullPath() != "" }
//	r.Use(auth, ginlock.Middleware(locks, ginlock.Get("user").Named("user").When(isRoute)))
//
// # Idempotent endpoints
//
// A client that got no answer sends its request again, with the same Idempotency-Key.
// Idempotent then repeats the first answer, and the handler does not run again:
//
//	paid := ginlock.Idempotent(locks, core.Join(ginlock.Get("user_id"), ginlock.IdempotencyKey()))
//	r.POST("/payments", auth, paid, pay)
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
// calls Attempt.Decide with core.EndUnknown or adds the error of its context to
// c.Errors: the service may have acted, and a copy acts again. Put a middleware that
// renders c.Errors inside Idempotent: outside, its answer is not stored. See
// [idempotent endpoints], [copies and stored answers] and [unknown outcomes].
//
// # What to know
//
// net/http detects that a client has disconnected only after the request's body was read
// to its end. So keep [waits] short, or read the body before the lock. The lock ends with
// the handler, not with the answer or the client. A step of c.Stream should check
// c.Request.Context().Err(), and end the stream if the lock is lost. Code that locks
// through a second Locker waits for its own request: see "Deadlocks" in the comment of
// package core.
//
// [Getting started]: https://github.com/reqlock/reqlock/blob/main/docs/getting-started.md#gin
// [Errors]: https://github.com/reqlock/reqlock/blob/main/docs/errors.md#gin
// [keys]: https://github.com/reqlock/reqlock/blob/main/docs/keys.md
// [the order of middlewares]: https://github.com/reqlock/reqlock/blob/main/docs/middleware-order.md#gin
// [idempotent endpoints]: https://github.com/reqlock/reqlock/blob/main/docs/idempotency.md
// [copies and stored answers]: https://github.com/reqlock/reqlock/blob/main/docs/replays.md
// [unknown outcomes]: https://github.com/reqlock/reqlock/blob/main/docs/unknown-outcomes.md
// [waits]: https://github.com/reqlock/reqlock/blob/main/docs/waiting.md
package ginlock
