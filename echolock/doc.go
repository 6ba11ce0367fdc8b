// Package echolock runs the requests of Echo (v4) handlers under a lock in
// Redis: those with the same key run one at a time, in all processes of a
// service.
//
//	locks := core.Must(core.New(rdb))
//	oneAtATime := echolock.Middleware(locks, echolock.Param("id"), core.WithWait(2*time.Second))
//
//	e.POST("/accounts/:id/transfer", transfer, auth, oneAtATime)
//
// MiddlewareWithConfig and Config.ToMiddleware do the same in the manner of
// Echo's own middlewares, with a Skipper and an ErrorHandler.
//
// # What happens to a request
//
// The key is read from the request, the lock is taken in Redis, the handler
// runs, and the lock is freed when it returns. A request that does not get its
// lock is refused, and its handler does not run: 409 where another request
// holds the lock, 503 where Redis cannot be asked, 400 where the request has no
// usable key.
//
// A refusal is an *echo.HTTPError that the middleware returns, so the
// application's HTTPErrorHandler renders it; Echo's default one sends a problem
// document (RFC 9457). Its Code is the status, its Message a short string such as
// "busy", and errors.Is sees through it. See
// WriteError for what it carries, and Config.ErrorHandler for answers of your
// own. What an HTTPErrorHandler makes of it is the application's: one that sends
// a 200, or nothing at all, does so here as for every other error.
//
// The handler's context is cancelled if the lock is lost while it runs;
// context.Cause says why. Its answer stands as it is. FromContext gives it the
// lease. Its c.Response() is not wrapped, so flushing, hijacking and
// http.ResponseController work as without a lock. When the handler is done,
// c.Request() is what it was before the lock, for the middlewares outside and
// the HTTPErrorHandler, also after a panic.
//
// # Where keys come from
//
// Whoever chooses the key chooses whom to hold up. Take it from the
// authenticated user (Get, GetAs) or from the resource in the path that the
// user was found to have a right to, and put the lock behind the middlewares
// that find out. A header, a query or a body alone lets any client lock the key
// of any other.
//
// A key is the whole name of the lock: account 42 and user 42 are the same one.
// core.Named keeps them apart:
//
//	core.Named("account", echolock.Param("id"))
//
// Two routes that use the same name and key exclude each other, which is what
// the GET, the POST and the DELETE of one account may need.
//
// An Idempotency-Key is chosen by the client, and another client may choose the
// same. Join it with who the client is:
//
//	core.Join(echolock.Get("user_id"), echolock.IdempotencyKey())
//
// What is read from a request as a key has at most 512 bytes and no control
// characters. What is there twice, so that the handler might read another one
// than the lock, is refused with core.ErrInvalidKey.
//
// A function of your own is a KeyFunc as well. If it returns an
// *echo.HTTPError that wraps no error of core, that one's Code and Message are
// the answer:
//
//	func(c echo.Context) (string, error) {
//		token, ok := c.Get("user").(*jwt.Token)
//		if !ok {
//			return "", echo.ErrUnauthorized
//		}
//		return token.Claims.GetSubject()
//	}
//
// If it has answered by itself when it returns an error or no key, its answer
// stands, and no error handler is asked.
//
// # Where to put it
//
// From the outside inwards: Recover, logger, CORS, BodyLimit, Decompress,
// authentication, validation, RateLimiter, lock, handler. Whatever can refuse a
// request refuses it before it has the lock. In Echo that is the order in which
// middlewares are given to Use, Group or a route; those of a route come last.
//
//	e.Use(middleware.Recover(), middleware.CORS(), middleware.BodyLimit("1M"))
//	accounts := e.Group("/accounts", auth)
//	accounts.POST("/:id/transfer", transfer, oneAtATime)
//
// Recover may stand on either side: the lock is freed in any case. From outside
// it answers 500 after that, from inside while the lock is still held.
//
// BodyLimit and Decompress belong before the lock if the key is in the body,
// which is then read no further than BodyLimit lets it, and else answered with
// 413. Behind the lock BodyLimit refuses only after the wait. Gzip may stand on
// either side.
//
// ContextTimeout around the lock bounds the wait and the handler together; a
// request whose time is over while it waits is 503. Behind the lock it bounds
// the handler alone. In both places the lock is held until the handler has
// returned.
//
// Echo's deprecated Timeout returns while the handler still runs. Behind the
// lock it frees the lock too early. Around the lock it leaves the lock alone,
// but Echo gives c to another request meanwhile, which the handler and every
// middleware behind it then take for their own. Use ContextTimeout.
//
// # Unknown routes
//
// Give the lock to routes where you can. Echo then finds the route before it
// comes to the lock, so that an unknown path stays 404 and a wrong method 405.
//
// Echo runs the middlewares of Use, and those of a Group under its prefix, for
// unknown paths too: 404 is what their handler returns. So an unknown path
// stays 404 if it has a key, such as the user's, and gets the lock; if it has
// none, such as one from Param, it is 400. The lock cannot tell such a request
// from one that is not routed yet, as under e.Pre, and does not let through
// what it does not know. Under e.Use, and in a Group whose path lacks the
// parameter, say that routes with the parameter are meant:
//
//	hasID := func(c echo.Context) bool { return slices.Contains(c.ParamNames(), "id") }
//	e.Use(echolock.Middleware(locks, core.When(hasID, echolock.Param("id"))))
//
// Then other routes run without a lock, and one whose parameter is empty, as in
// "/accounts//transfer", is still 400. Do not ask whether c.Path() is empty: it
// is not where a Group with middlewares or a RouteNotFound answers the rest.
//
// Do not use e.Pre for the lock: it runs before e.Use and so before
// authentication, no route has parameters yet, and under this condition no
// request would be locked.
//
// # Idempotent endpoints
//
// A client whose connection broke does not know whether its request took effect.
// It sends the request again, with the same Idempotency-Key, and Idempotent gives
// it the first answer:
//
//	paid := echolock.Idempotent(locks, core.Join(echolock.Get("user_id"), echolock.IdempotencyKey()))
//	e.POST("/payments", pay, auth, paid)
//
// It is for what must not happen twice, such as a payment. The key is that of a
// user, as above, since clients choose the other part of it: without the user, one
// client is given the answer of another. Method and route belong to it by
// themselves, and what the user must have a right to is found out in front, also
// for a copy.
//
// The first request runs under a lock of its own. A copy that comes meanwhile is
// refused with 409, or with core.WithWait waits for the answer. The answer is
// stored in Redis, in the same step that frees the lock, before its first byte is
// sent, and is kept as long as core.WithRetention says. If it could not be stored, it
// is sent all the same; the observer hears of it, and copies are refused with
// "outcome_unknown".
//
// A copy gets the status, the body, "Idempotent-Replayed: true", and those headers
// that belong to the answer, whoever has set them: Content-Type and its
// kin, Location, ETag, Last-Modified, Link, Retry-After, Allow, and those of
// WithReplayedHeaders. Cookies, dates and what else belongs to one exchange are
// never replayed, and all other headers of middlewares outside are those that they
// have set for the copy.
//
// Answers are stored that a copy would meet again, see WithStored: a 503, or a 409
// of the lock inside, frees the key, and a copy runs. So does a panic, and the end of
// the handler's goroutine. Exception: if the handler has written a status before that
// is stored, it may have taken effect, and copies are refused with "outcome_unknown".
// A handler that knows better says so:
//
//	attempt, _ := echolock.AttemptFromContext(c)
//	attempt.Decide(core.Uncertain) // the payment provider timed out: its 504 tells nothing
//
// core.StoreAnswer and core.DropAnswer keep an answer, or do not, whatever its status
// is. The last decision before the handler returns counts. It also counts before a
// panic: core.DropAnswer frees the key, and after core.StoreAnswer the outcome is
// unknown, since the answer may be incomplete. An error that
// the handler returns is rendered at once, by the application's HTTPErrorHandler,
// and its answer is stored by its status as any other; those outside see the answer,
// and no error. One that is not rendered at all frees the key.
//
// A process that dies in the middle leaves a request of which nobody knows whether
// it took effect; so does a handler that leaves without any answer because its
// context has ended. Copies are refused with "outcome_unknown", until an operator
// frees the key, for which core.Locker.Resolve takes core.EndpointKey(method, route,
// key); or they run, see core.WithInterrupted.
//
// An answer that is flushed, hijacked, has trailers or is longer than
// core.WithMaxRecord goes straight out. Unless its status frees the key, its request
// is done when the handler returns, and copies are refused with
// "completed_unreplayable"; after a panic, with "outcome_unknown". So streams and
// server-sent events do not belong under Idempotent, nor does a reverse proxy for a
// service that answers without a Content-Length, since it flushes. A
// reverse proxy answers 502, which frees the key, if its service breaks off before a
// status: its ErrorHandler can decide core.Uncertain. An answer is told by its status: errors that are sent as 200, as in GraphQL and JSON-RPC, are kept
// like others, where the handler does not decide.
//
// Its place, from the outside inwards: recover, log, CORS, compression,
// authentication, rate limit, Idempotent, lock, handler. What stands inside it is
// stored and replayed. ContextTimeout may stand on either side: behind, it bounds
// the handler alone. BodyLimit and Decompress stand outside.
//
// The body is read first, up to WithMaxBody, for the fingerprint by which a request
// is told from another one that comes with the same key: that is refused with 422.
// The fingerprint is made of the path, the query, the media type without its
// parameters, and the body. A client has to send the same bytes again. Exception: a
// multipart body is compared part by part, in order, by name, file name, type, other
// headers and bytes, and never by its boundary, which is a new one for each retry.
// It is compared as it was sent if it is malformed or has more than 1000 parts.
//
// A middleware outside that reads the body has to leave it there, or to leave a
// parsed form without files; else the request is refused with 500. Use
// WithFingerprint or WithoutFingerprint then. A request whose length is unknown or
// above 0, and whose body reads as empty, is refused too: nobody can say that its body
// was not read before.
//
// The host belongs neither to the route nor to the fingerprint: a client may send a
// copy to another name of the service. Where a name stands for a tenant, join Host
// with the key.
//
// What holds: for a key, while its record is kept, there is at most one stored
// answer, and all copies get that one. It is not exactly once. The effect and the
// storing of the answer take place in two systems, and between them a process can
// die; a record can be lost with its Redis; a request that lost its lease may still
// run while another one does. Where a second effect must be impossible, hand the key
// on to the payment provider, or make it unique in the database.
//
// # What to know
//
// net/http notices that a client has left only once the request's body was read
// to its end. So a request with a body, waiting for its lock, waits to the end
// of its wait when its client leaves, and may then run for nobody, unless the
// key is in the body or a middleware before the lock has read it.
//
// The lock ends with the handler, not with the answer. A client that has read
// the whole of a long answer can find the lock still held for a moment when it
// comes back on another connection; a short core.WithWait hides it. It does not
// end with the client either: when that has gone, the handler's context is
// cancelled as always, and the lock is held until the handler returns. An error
// that the handler returns is rendered after the lock is freed.
//
// A stream or a hijacked connection holds the lock for as long as its handler
// runs.
//
// Two middlewares with the same key on one request, such as one for a group and
// one for a route, take one lock and free it once. core.WithFencing on the inner
// one needs it on the outer one: see core.ErrNoFence. With different keys they
// take one after the other, in the order of the middlewares; two requests that
// take them in different orders would wait for each other until their waits are
// over. Also takes several keys at once without that.
package echolock
