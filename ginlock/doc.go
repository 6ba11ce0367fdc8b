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
// one for a route, take one lock and free it once. With different keys they
// take one after the other, in the order of the middlewares; two requests that
// take them in different orders would wait for each other until their waits are
// over. Also takes several keys at once without that.
package ginlock
