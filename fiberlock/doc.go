// Package fiberlock runs the requests of Fiber (v3) handlers under a lock in Redis. Requests
// with the same key run one at a time, in all processes of a service.
//
//	locks := core.Must(core.New(rdb))
//	oneAtATime := fiberlock.Middleware(locks,
//		fiberlock.Params("id").Named("account"), core.WithWait(2*time.Second))
//
//	app.Post("/accounts/:id/transfer", auth, oneAtATime, transfer)
//
// [Getting started] has a whole program. Key.When is what other middlewares of Fiber have as Next.
//
// The middleware reads the key from the request, takes the lock, runs the handlers behind
// it, and frees the lock when they return. If a request does not get its lock, the
// middleware answers: 409 if another request holds the lock, 503 if
// Redis is unavailable, 400 if the request has no usable key. [Errors] has the whole
// table. WithErrorHandler sets answers of your own, or leaves refusals to the ErrorHandler of your
// application. Fiber's default ErrorHandler sends the text of an error, so the text of a refusal
// is its code alone.
//
// # Which context
//
// Pass c.Context() to what runs under the lock, such as queries and nested calls
// of core.Locker.Do. It is cancelled with the cause core.ErrLost if the lock is lost. c
// itself never ends. core.LeaseFromContext and core.AttemptFromContext find the lease and the attempt in
// c, too, but core.Locker.Do with c and the same key returns core.ErrHiddenLease.
//
// A goroutine that outlives the handler runs without the lock.
//
// # Keys
//
// A client that can choose the key can block the requests of others. Take the key from
// the authenticated user (Locals, LocalsAs), or from a resource in the path that the user is
// allowed to use. With a key from a header, a query or a body alone, any client can lock
// the key of any other client.
//
// The key is the whole name of the lock: account 42 and user 42 have the same lock.
// Key.Named keeps them apart. If a function of core.KeyOf returns an *fiber.Error,
// such as fiber.ErrUnauthorized, the application's ErrorHandler answers with it. No middleware keeps the
// memory of a key, because Fiber uses that of a request again. See [keys].
//
// # Where to put it
//
// Every middleware that can refuse a request, authentication first, belongs before the
// lock. So does Fiber's timeout middleware: behind the lock, it frees the lock while the handler still
// runs. See [the order of middlewares].
//
// Give the lock to routes where you can. A middleware of app.Use, and of a group, runs before Fiber
// knows the route: c.Params has the parameters of its own path alone, and the lock is also taken for
// unknown paths below it:
//
//	app.Use("/accounts/:id", fiberlock.Middleware(locks, fiberlock.Params("id").Named("account")))
//
// # Idempotent endpoints
//
// A client that got no answer sends its request again, with the same Idempotency-Key.
// Idempotent then repeats the first answer, and the handler does not run again:
//
//	paid := fiberlock.Idempotent(locks, core.Join(fiberlock.Locals("user_id"), fiberlock.IdempotencyKey()))
//	app.Post("/payments", auth, paid, pay)
//
// Join the key with the user. Clients choose their keys, and without the user one client
// could get the answer of another. Give Idempotent to routes: in app.Use and in a group it refuses each
// request.
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
// Fiber does not detect that a client has disconnected: its request waits to the end of
// core.WithWait, and then runs. So keep [waits] short. The lock ends with the handlers. Fiber
// sends a stream (c.SendStreamWriter, c.SendStream, c.SendFile) after that, without the lock. Code that
// locks through a second Locker waits for its own request: see "Deadlocks" in the comment of package
// core.
//
// Fiber's idempotency middleware has a Locker, too. Its interface has neither a context nor a lease, so
// reqlock does not implement it: use Idempotent.
//
// [Getting started]: https://github.com/reqlock/reqlock/blob/main/docs/getting-started.md#fiber
// [Errors]: https://github.com/reqlock/reqlock/blob/main/docs/errors.md#all-refusals
// [keys]: https://github.com/reqlock/reqlock/blob/main/docs/keys.md
// [the order of middlewares]: https://github.com/reqlock/reqlock/blob/main/docs/middleware-order.md#fiber
// [idempotent endpoints]: https://github.com/reqlock/reqlock/blob/main/docs/idempotency.md
// [copies and stored answers]: https://github.com/reqlock/reqlock/blob/main/docs/replays.md
// [unknown outcomes]: https://github.com/reqlock/reqlock/blob/main/docs/unknown-outcomes.md
// [waits]: https://github.com/reqlock/reqlock/blob/main/docs/waiting.md
package fiberlock
