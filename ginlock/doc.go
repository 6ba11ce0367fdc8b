// Package ginlock runs the requests of Gin handlers under a lock in Redis:
// those with the same key run one at a time, in all processes of a service.
//
//	locks := core.Must(core.New(rdb))
//	oneAtATime := ginlock.Middleware(locks, ginlock.Param("id"), core.WithWait(2*time.Second))
//
//	r.POST("/accounts/:id/transfer", auth, oneAtATime, transfer)
//
// It is a plain gin.HandlerFunc, for a route, a group or the engine.
//
// # What happens to a request
//
// The key is read from the request, the lock is taken in Redis, the handlers
// behind the middleware run, and the lock is freed when they return. A request
// that does not get its lock is answered and aborted, and its handler does not
// run: 409 where another request holds the lock, 503 where Redis cannot be
// asked, 400 where the request has no usable key. See WriteError for the
// answers and WithErrorHandler for your own.
//
// The error is in c.Errors too, as the last one, where loggers look. A
// middleware that renders c.Errors after c.Next finds the answer written: let it
// ask c.Writer.Written first, or see WithErrorHandler to leave the answer to it.
//
// The handler's c.Request.Context() is cancelled if the lock is lost while it
// runs; context.Cause says why. Its answer stands as it is. FromContext gives
// it the lease. c.Writer is not replaced, so c.Stream, c.SSEvent and
// c.Writer.Hijack work as without a lock.
//
// # Which context
//
// Give c.Request.Context() to what runs under the lock, such as queries and
// nested calls of core.Locker.Do. It does not depend on the engine. c itself
// serves as a context only if engine.ContextWithFallback is on; without it c
// knows neither the lease nor its end.
//
// What outlives the handler outlives the lock. A goroutine with c.Copy() has a
// context that ends when the handler returns, as c.Request.Context() of every
// Gin handler does.
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
//	core.Named("account", ginlock.Param("id"))
//
// Two routes that use the same name and key exclude each other, which is what
// the GET, the POST and the DELETE of one account may need.
//
// An Idempotency-Key is chosen by the client, and another client may choose the
// same. Join it with who the client is:
//
//	core.Join(ginlock.Get("user_id"), ginlock.IdempotencyKey())
//
// What is read from a request as a key has at most 512 bytes and no control
// characters. What is there twice, so that the handler might read another one
// than the lock, is refused with core.ErrInvalidKey.
//
// A function of your own is a KeyFunc as well, and so are Gin's getters:
//
//	core.Of((*gin.Context).FullPath)
//	core.Of(func(c *gin.Context) string {
//		user, _ := sessions.Default(c).Get("user").(string)
//		return user
//	})
//
// It may answer by itself and return an error or no key, as with
//
//	return "", c.AbortWithError(http.StatusUnauthorized, err)
//
// or after c.BindJSON has failed. Then its answer stands as it is, and no error
// handler is asked.
//
// # Where to put it
//
// From the outside inwards: recovery, logger and tracing, CORS, compression,
// timeout, authentication, validation, rate limit, lock, handler.
//
//	r := gin.Default() // logs and recovers
//	r.Use(cors.Default(), gzip.Gzip(gzip.DefaultCompression))
//	r.POST("/payments", auth, oneAtATime, pay)
//
// Whatever can refuse a request refuses it before it has the lock. CORS in
// front answers preflights without it, and lets a script read why it was
// refused. Recovery may also stand behind the lock: it is freed either way.
// What decompresses bodies belongs before the lock if the key is in the body.
//
// A timeout that runs handlers in a goroutine of its own and may return before
// them, as http.TimeoutHandler around the engine does and a timeout middleware
// may, belongs before the lock. Then the lock is held until the handler
// returns, though the client has its answer. Behind the lock, it would be freed
// while the handler still runs. One that only sets a deadline of
// c.Request.Context() may stand on either side: before the lock, the wait for
// it counts as well, and ends with 503.
//
// # Unknown routes
//
// What an engine uses runs for unknown routes as well, before they get their
// 404. There a Param is empty, which would be answered with 400, and other keys
// would take a lock for nothing. To lock a whole engine, say that only routes
// are meant:
//
//	isRoute := func(c *gin.Context) bool { return c.FullPath() != "" }
//	r.Use(auth, ginlock.Middleware(locks, core.When(isRoute, ginlock.Get("user"))))
//
// The package does not do this by itself, since the handlers of r.NoRoute may
// do real work, such as that of a proxy, and would silently run without the
// lock. The middlewares of a group do not run for unknown routes.
//
// # Idempotent endpoints
//
// A client whose connection broke does not know whether its request took effect.
// It sends the request again, with the same Idempotency-Key, and Idempotent gives
// it the first answer:
//
//	paid := ginlock.Idempotent(locks, core.Join(ginlock.Get("user_id"), ginlock.IdempotencyKey()))
//	r.POST("/payments", auth, paid, pay)
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
//	attempt, _ := ginlock.AttemptFromContext(c)
//	attempt.Decide(core.Uncertain) // the payment provider timed out: its 504 tells nothing
//
// core.StoreAnswer and core.DropAnswer keep an answer, or do not, whatever its status
// is. The last decision before the handlers return counts. It also counts before a
// panic: core.DropAnswer frees the key, and after core.StoreAnswer the outcome is
// unknown, since the answer may be incomplete. A handler that
// writes nothing and leaves an error in c.Errors leaves its answer to those outside:
// it is not stored, and frees the key.
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
// stored and replayed. A timeout that may return before its handlers stands
// outside: then a request that was answered with its 503 is done all the same, and a
// copy gets the answer. Inside, its 503 would free the key while the handler still
// runs.
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
// cancelled as always, and the lock is held until the handler returns.
//
// A stream or a hijacked connection holds the lock for as long as its handler
// runs. A step of c.Stream does well to look at c.Request.Context().Err(), and
// to end the stream when the lock is lost.
//
// Two middlewares with the same key on one request, such as one for a group and
// one for a route, take one lock and free it once. core.WithFencing on the inner
// one needs it on the outer one: see core.ErrNoFence. With different keys they
// take one after the other, in the order of the middlewares; two requests that
// take them in different orders would wait for each other until their waits are
// over. Also takes several keys at once without that.
package ginlock
