// Package nethttplock runs the requests of net/http handlers under a lock in Redis.
// Requests with the same key run one at a time, in all processes of a service.
//
//	locks := core.Must(core.New(rdb))
//	oneAtATime := nethttplock.Middleware(locks,
//		nethttplock.PathValue("id").Named("account"), core.WithWait(2*time.Second))
//
//	mux.Handle("POST /accounts/{id}/transfer", auth(oneAtATime(transfer)))
//
// The middleware is a plain func(http.Handler) http.Handler, so it works with chi, gorilla
// and others too: see [frameworks]. [Getting started] has a whole program.
//
// The middleware reads the key from the request, takes the lock, runs the handler, and
// frees the lock when the handler returns. If a request does not get its lock, its
// handler does not run, and the middleware answers: 409 if another request holds the
// lock, 503 if Redis is unavailable, 400 if the request has no usable key. [Errors] has
// the whole table, and WithErrorHandler sets answers of your own.
//
// If the lock is lost while the handler runs, its context is cancelled with the cause
// core.ErrLost, and the handler's answer is sent unchanged.
//
// # Keys
//
// A client that can choose the key can block the requests of others. Take the key from
// the authenticated user (ContextValue, ContextValueAs, BasicUser), or from a resource
// in the path that the user is allowed to use. With a key from a header, a query or a
// body alone, any client can lock the key of any other client.
//
// The key is the whole name of the lock: account 42 and user 42 have the same lock.
// Key.Named keeps them apart. See [keys].
//
// # Where to put it
//
// Every middleware that can refuse a request, authentication first, belongs outside the
// lock. So does http.TimeoutHandler: inside, it frees the lock while the handler still
// runs. Wrap handlers, not the mux: around the mux PathValue is empty, which is 400 for
// every request. With chi, use With or Group instead of a Use at the top. See
// [the order of middlewares].
//
// # Idempotent endpoints
//
// A client that got no answer sends its request again, with the same Idempotency-Key.
// Idempotent then repeats the first answer, and the handler does not run again:
//
//	paid := nethttplock.Idempotent(locks,
//		core.Join(nethttplock.ContextValue(userKey{}), nethttplock.IdempotencyKey()))
//	mux.Handle("POST /payments", auth(paid(payments)))
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
// calls Attempt.Decide with core.EndUnknown: the service may have acted, and a copy acts
// again. See [idempotent endpoints], [copies and stored answers] and [unknown outcomes].
//
// # What to know
//
// net/http detects that a client has disconnected only after the request's body was read
// to its end. So keep [waits] short, or read the body before the lock. The lock ends with
// the handler, not with the answer or the client. A stream holds it until its handler
// returns. Code that locks through a second Locker waits for its own request: see
// "Deadlocks" in the comment of package core. To shut down, call Shutdown of the http.Server
// first, then Close of the Locker, and then close the Redis client.
//
// [Getting started]: https://github.com/reqlock/reqlock/blob/main/docs/getting-started.md
// [Errors]: https://github.com/reqlock/reqlock/blob/main/docs/errors.md#all-refusals
// [frameworks]: https://github.com/reqlock/reqlock/blob/main/docs/frameworks.md
// [keys]: https://github.com/reqlock/reqlock/blob/main/docs/keys.md
// [the order of middlewares]: https://github.com/reqlock/reqlock/blob/main/docs/middleware-order.md#nethttp
// [idempotent endpoints]: https://github.com/reqlock/reqlock/blob/main/docs/idempotency.md
// [copies and stored answers]: https://github.com/reqlock/reqlock/blob/main/docs/replays.md
// [unknown outcomes]: https://github.com/reqlock/reqlock/blob/main/docs/unknown-outcomes.md
// [waits]: https://github.com/reqlock/reqlock/blob/main/docs/waiting.md
package nethttplock
