// Package echolock runs the requests of Echo (v4) handlers under a lock in Redis.
// Requests with the same key run one at a time, in all processes of a service.
//
//	locks := core.Must(core.New(rdb))
//	oneAtATime := echolock.Middleware(locks,
//		core.Named("account", echolock.Param("id")), core.WithWait(2*time.Second))
//
//	e.POST("/accounts/:id/transfer", transfer, auth, oneAtATime)
//
// MiddlewareWithConfig and Config.ToMiddleware do the same in the style of Echo's own
// middlewares, with a Skipper and an ErrorHandler.
//
// # What happens to a request
//
// The middleware reads the key from the request, takes the lock in Redis, runs the
// handler, and frees the lock when the handler returns. If a request does not get its
// lock, its handler does not run, and the middleware refuses the request: 409 if
// another request holds the lock, 503 if Redis is unavailable, 400 if the request has
// no usable key.
//
// A refusal is an *echo.HTTPError that the middleware returns, so the application's
// HTTPErrorHandler renders it. Echo's default HTTPErrorHandler sends a problem
// document (RFC 9457). The error's Code is the status, its Message is a short string
// such as "busy", and it unwraps to the cause, so errors.Is works. See WriteError for
// what the error carries, and Config.ErrorHandler for answers of your own. reqlock
// does not check what an HTTPErrorHandler sends: if it sends a 200 or nothing at all,
// the client gets that.
//
// If the lock is lost while the handler runs, its context is cancelled, and
// context.Cause returns the reason. The handler's answer is sent unchanged.
// FromContext returns the lease. c.Response() is not wrapped, so flushing, hijacking
// and http.ResponseController work as without a lock. When the handler has ended,
// also by a panic, c.Request() is the request from before the lock again, for the
// middlewares outside and the HTTPErrorHandler.
//
// # Where keys come from
//
// A client that can choose the key can block the requests of others. Take the key
// from the authenticated user (Get, GetAs), or from a resource in the path that the
// user is allowed to use. Put the lock behind the middlewares that check this. With a
// key from a header, a query or a body alone, any client can lock the key of any
// other client.
//
// The key is the whole name of the lock: account 42 and user 42 have the same lock.
// core.Named keeps them apart:
//
//	core.Named("account", echolock.Param("id"))
//
// Two routes with the same name and key exclude each other. That is useful for the
// GET, the POST and the DELETE of one account.
//
// The client chooses the Idempotency-Key, and another client may choose the same.
// Join it with the user:
//
//	core.Join(echolock.Get("user_id"), echolock.IdempotencyKey())
//
// A key that is read from a request has at most 512 bytes and no control characters.
// If the request has the value twice, the lock and the handler might read different
// ones, so the request is refused with core.ErrInvalidKey.
//
// A function of your own is a KeyFunc as well. If it returns an *echo.HTTPError that
// wraps no error of core, the answer has the Code and the Message of that error:
//
//	func(c echo.Context) (string, error) {
//		token, ok := c.Get("user").(*jwt.Token)
//		if !ok {
//			return "", echo.ErrUnauthorized
//		}
//		return token.Claims.GetSubject()
//	}
//
// If the key function has answered by itself when it returns an error or no key, its
// answer is kept, and the error handler is not called.
//
// # Where to put it
//
// From the outside inwards: Recover, logger, CORS, BodyLimit, Decompress,
// authentication, validation, RateLimiter, lock, handler. Every middleware that can
// refuse a request should stand before the lock. Echo runs middlewares in the order
// in which Use, Group or a route gets them. Middlewares of a route come last.
//
//	e.Use(middleware.Recover(), middleware.CORS(), middleware.BodyLimit("1M"))
//	accounts := e.Group("/accounts", auth)
//	accounts.POST("/:id/transfer", transfer, oneAtATime)
//
// Recover may stand on either side: the lock is freed in both cases. Outside, Recover
// answers 500 after the lock is freed; inside, while the lock is still held.
//
// If the key is in the body, BodyLimit and Decompress belong before the lock. Then
// the key function reads no more than BodyLimit allows, and a longer body is answered
// with 413. Behind the lock BodyLimit refuses only after the wait. Gzip may stand on
// either side.
//
// ContextTimeout around the lock limits the wait and the handler together; if it ends
// during the wait, the answer is 503. Behind the lock it limits the handler alone. In
// both places the lock is held until the handler has returned.
//
// Echo's deprecated Timeout returns while the handler still runs. Behind the lock it
// frees the lock too early. Around the lock the lock is held correctly, but Echo
// reuses c for another request while the handler, and every middleware behind
// Timeout, still uses it. Use ContextTimeout.
//
// # Unknown routes
//
// Give the lock to routes where you can. Echo then finds the route before it runs the
// lock, so an unknown path gets 404 and a wrong method 405, as without the lock.
//
// Echo also runs the middlewares of Use for unknown paths, and the middlewares of a
// Group for unknown paths under its prefix. Their handler returns 404. So a request
// for an unknown path that has a key, such as the user's, takes the lock and gets
// 404. A request without a key, such as one from Param, gets 400. The lock cannot
// distinguish such a request from one that is not routed yet, as under e.Pre, so it
// refuses both. Under e.Use, and in a Group without the parameter in its path, limit
// the lock to routes with the parameter:
//
//	hasID := func(c echo.Context) bool { return slices.Contains(c.ParamNames(), "id") }
//	e.Use(echolock.Middleware(locks, core.When(hasID, core.Named("account", echolock.Param("id")))))
//
// Then other routes run without a lock, and a route with an empty parameter, as in
// "/accounts//transfer", is still 400. Do not check whether c.Path() is empty: it is
// not empty where a Group with middlewares or a RouteNotFound answers unknown paths.
//
// Do not use e.Pre for the lock. It runs before e.Use and so before authentication,
// and no route has parameters yet. With this condition no request would be locked.
//
// # Idempotent endpoints
//
// If its connection breaks, a client does not know whether the request took effect.
// It sends the request again, with the same Idempotency-Key, and Idempotent returns
// the first answer:
//
//	paid := echolock.Idempotent(locks, core.Join(echolock.Get("user_id"), echolock.IdempotencyKey()))
//	e.POST("/payments", pay, auth, paid)
//
// Use it for effects that must not happen twice, such as a payment. The key contains
// the user, as above, since clients choose the other part: without the user, a client
// could get the answer of another client. The method and the route always belong to
// the key. Check the user's rights before Idempotent, so that they are checked for
// copies too.
//
// The first request runs under a lock of its own. A copy that arrives while it runs
// is refused with 409, or waits for the answer with core.WithWait. The answer is
// stored in Redis, in the same step that frees the lock, before its first byte is
// sent. It is kept for the time of core.WithRetention. If the answer cannot be
// stored, it is sent anyway, the observer gets an event, and copies are refused with
// "outcome_unknown".
//
// A copy gets the status, the body, "Idempotent-Replayed: true", and the headers that
// belong to the answer, from the handler or a middleware: Content-Type and similar
// ones, Location, ETag, Last-Modified, Link, Retry-After, Allow, and the headers that
// WithReplayedHeaders names. Cookies, dates and other headers of one exchange are never
// replayed. All other headers come from the middlewares outside, which run for the
// copy.
//
// Idempotent stores the answers that a copy would get again, see WithStored. A panic,
// and a 500, 502, 504 or 499, leave the outcome unknown, see WithUncertain: the request
// may have had its effect before it failed. Copies are then refused with
// "outcome_unknown". A 503, or a 409 of the lock inside, frees the key, so that a copy
// runs. If all effects of a handler roll back when it fails, as in one database
// transaction, take FreeOnFailure. A handler can decide otherwise:
//
//	attempt, _ := echolock.AttemptFromContext(c)
//	attempt.Decide(core.DropAnswer) // a 500, but before the charge
//
// core.Uncertain leaves the outcome unknown for any answer, such as a 503 that a timeout
// of the payment provider has caused.
// core.StoreAnswer and core.DropAnswer decide whether the answer is stored, for any
// status. The last decision before the handler returns counts. It also counts before
// a panic: core.DropAnswer frees the key, and after core.StoreAnswer the outcome is
// unknown, since the answer may be incomplete. An error that the handler returns is
// rendered at once, by the application's HTTPErrorHandler, and the answer is stored
// by its status like any other. The middlewares outside see the answer, and no error.
// If the error is not rendered at all, the key is freed.
//
// If a process dies during a request, the outcome of the request is unknown. The same
// holds for a handler that returns without an answer because its context has ended.
// Copies are refused with "outcome_unknown", until an operator says what became of the
// request:
//
//	key, err := echolock.EndpointKey("POST", "/payments", "ada", "8e03978e-40d5-43e8") // or the key of the log line
//	outcome, err := locks.Outcome(ctx, key)
//	// outcome.State is core.RequestUnknown: look for the payment
//	err = locks.Resolve(ctx, key, core.Done(), outcome.Seen)
//
// After core.Forget() the next copy runs. After core.Done() copies are refused with
// "completed_unreplayable", and after core.Answered(record) they get the answer that Answer
// has made. With core.WithInterrupted copies can run instead.
//
// An answer is sent without being stored if it is flushed, hijacked, has trailers, or
// is longer than core.WithMaxRecord. Unless its status frees the key, the request is
// complete when the handler returns, and copies are refused with
// "completed_unreplayable"; after a panic, with "outcome_unknown". So do not put
// streams or server-sent events under Idempotent. Do not put a reverse proxy there
// for a service that answers without a Content-Length, since the proxy flushes. If
// the service breaks off before a status, a reverse proxy answers 502, and the outcome
// is unknown; if it could not be reached at all, the proxy's ErrorHandler can decide
// core.DropAnswer.
//
// The status alone says whether an answer is an error. Errors that are sent as 200,
// as in GraphQL and JSON-RPC, are stored, unless the handler decides otherwise.
//
// The order, from the outside inwards: recover, log, CORS, compression,
// authentication, rate limit, Idempotent, lock, handler. What the handlers and
// middlewares inside Idempotent write is stored and replayed. ContextTimeout may
// stand on either side: inside, it limits the handler alone. BodyLimit and Decompress
// belong outside.
//
// Idempotent first reads the body, up to WithMaxBody, for the fingerprint of the
// request. A different request with the same key is refused with 422. The fingerprint
// covers the path, the query, the media type without its parameters, and the body. A
// client must send the same bytes again. Exception: a multipart body is compared part
// by part, in order, by name, file name, type, other headers and bytes. Its boundary,
// which clients choose anew for each retry, does not count. A multipart body that is
// malformed or has more than 1000 parts is compared byte by byte.
//
// A middleware outside that reads the body must put the body back, or leave a parsed
// form without files. Otherwise the request is refused with 500: use WithFingerprint
// or WithoutFingerprint then. A request with a length that is unknown or above 0 is
// also refused if its body reads as empty, since a middleware may have read the body
// before.
//
// The host belongs neither to the route nor to the fingerprint: a client may send a
// copy to another host name of the service. If each tenant has its own host name,
// join Host with the key.
//
// The guarantee: while the record of a key is kept, the key has at most one stored
// answer, and all copies get that answer. This is not "exactly once". The effect and
// the stored answer are in two systems, and a process can die between the two writes.
// A record can be lost with its Redis. A request that lost its lease may still run
// while another one runs. If a second effect must be impossible, pass the key to the
// payment provider, or make it unique in the database.
//
// # What to know
//
// net/http detects that a client has disconnected only after the request's body was
// read to its end. So a request with an unread body keeps waiting for its lock after
// its client has disconnected, to the end of its wait, and may then run without a
// client. Exception: the key is in the body, or a middleware before the lock has read
// the body.
//
// The lock ends with the handler, not with the answer. A client that has read a long
// answer to its end can find the lock still held for a moment if it sends its next
// request on another connection; a short core.WithWait covers that. The lock does not
// end with the client either: when the client disconnects, the handler's context is
// cancelled as always, and the lock is held until the handler returns. An error that
// the handler returns is rendered after the lock was freed.
//
// A stream or a hijacked connection holds the lock for as long as its handler
// runs.
//
// Two middlewares with the same key on one request, such as one for a group and one
// for a route, take one lock and free it once. If the inner one has core.WithFencing,
// the outer one needs it too: see core.ErrNoFence. Middlewares with different keys
// take their locks one after the other, in the order of the middlewares. Two requests
// that take the same locks in different orders would wait for each other until their
// waits end. Also takes several keys at once and avoids that. Code that locks
// through a second Locker with the same Redis and prefix waits for its own request: see
// "Deadlocks" in the comment of package core.
package echolock
