// Package nethttplock runs the requests of net/http handlers under a lock in Redis.
// Requests with the same key run one at a time, in all processes of a service.
//
//	locks := core.Must(core.New(rdb))
//	oneAtATime := nethttplock.Middleware(locks,
//		core.Named("account", nethttplock.PathValue("id")), core.WithWait(2*time.Second))
//
//	mux.Handle("POST /accounts/{id}/transfer", oneAtATime(transfer))
//
// The middleware is a plain func(http.Handler) http.Handler, so it works with chi and
// gorilla too. See "Connect" for its limits there.
//
// # What happens to a request
//
// The middleware reads the key from the request, takes the lock in Redis, runs the
// handler, and frees the lock when the handler returns. If a request does not get its
// lock, its handler does not run, and the middleware answers: 409 if another request
// holds the lock, 503 if Redis is unavailable, 400 if the request has no usable key.
// See WriteError for the answers and WithErrorHandler for your own.
//
// If the lock is lost while the handler runs, its context is cancelled, and
// context.Cause returns the reason. The handler's answer is sent unchanged.
// FromContext returns the lease. The ResponseWriter is the server's own, so
// http.Flusher, http.Hijacker and http.ResponseController work as without a lock.
//
// # Where keys come from
//
// A client that can choose the key can block the requests of others. Take the key
// from the authenticated user (ContextValue, ContextValueAs, BasicUser), or from a
// resource in the path that the user is allowed to use. Put the lock behind the
// middlewares that check this. With a key from a header, a query or a body alone, any
// client can lock the key of any other client.
//
// The key is the whole name of the lock: account 42 and user 42 have the same lock.
// core.Named keeps them apart:
//
//	core.Named("account", nethttplock.PathValue("id"))
//
// Two routes with the same name and key exclude each other. That is useful for the
// GET, the POST and the DELETE of one account.
//
// The client chooses the Idempotency-Key, and another client may choose the same.
// Join it with the user:
//
//	core.Join(nethttplock.ContextValue(userKey{}), nethttplock.IdempotencyKey())
//
// A key that is read from a request has at most 512 bytes and no control characters.
// If the request has the value twice, the lock and the handler might read different
// ones, so the request is refused with core.ErrInvalidKey.
//
// A function of your own is a KeyFunc as well. gorilla's mux does not set PathValue:
//
//	core.Of(func(r *http.Request) string { return mux.Vars(r)["id"] })
//
// # Where to put it
//
// From the outside inwards: recover, log, CORS, authentication, validation, rate
// limit, lock, handler. Every middleware that can refuse a request should stand
// before the lock.
//
// Wrap handlers, not the mux. The mux sets the wildcards of a pattern; around the mux
// PathValue is empty, which is 400 for every request. With chi, use With or Group
// instead of a Use at the top. If the key does not need the route, you can wrap a
// whole mux. Then a request for an unknown route takes the lock too, and without a
// key it gets 400 instead of 404.
//
// If the key is in the body, a middleware that decompresses bodies belongs before the
// lock, and so does http.MaxBytesHandler.
//
// TimeoutHandler belongs around the lock, not inside it:
//
//	http.TimeoutHandler(lock(h), time.Second, "") // right: the lock is held until h returns
//	lock(http.TimeoutHandler(h, time.Second, "")) // wrong: it is freed while h still runs
//
// # Idempotent endpoints
//
// If its connection breaks, a client does not know whether the request took effect.
// It sends the request again, with the same Idempotency-Key, and Idempotent returns
// the first answer:
//
//	paid := nethttplock.Idempotent(locks, core.Join(nethttplock.ContextValue(userKey{}), nethttplock.IdempotencyKey()))
//	mux.Handle("POST /payments", auth(paid(payments)))
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
//	attempt, _ := nethttplock.AttemptFromContext(r.Context())
//	attempt.Decide(core.DropAnswer) // a 500, but before the charge
//
// core.Uncertain leaves the outcome unknown for any answer, such as a 503 that a timeout
// of the payment provider has caused.
// core.StoreAnswer and core.DropAnswer decide whether the answer is stored, for any
// status. The last decision before the handler returns counts. It also counts before
// a panic: core.DropAnswer frees the key, and after core.StoreAnswer the outcome is
// unknown, since the answer may be incomplete.
//
// If a process dies during a request, the outcome of the request is unknown. The same
// holds for a handler that returns without an answer because its context has ended.
// Copies are refused with "outcome_unknown", until an operator says what became of the
// request:
//
//	key, err := nethttplock.EndpointKey("POST", "POST /payments", "ada", "8e03978e-40d5-43e8") // or the key of the log line
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
// middlewares inside Idempotent write is stored and replayed. http.TimeoutHandler
// belongs outside: a request that was answered with its 503 is completed anyway, and
// a copy gets the answer. Inside, its 503 would free the key while the handler still
// runs.
//
// Wrap handlers rather than the mux here too: around the mux the route is unknown,
// and the path is used instead. The pattern identifies the route. If you rename a
// wildcard, the route is a new one, and its keys are no longer found.
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
// # Connect
//
// The middleware also wraps the handlers of connectrpc.com/connect, with keys as for any
// request. There is no adapter for Connect yet, so a client of Connect reads a refusal
// by its HTTP status alone, as "unknown: 409 Conflict", and cannot read its code. Write
// the error in the form of Connect instead:
//
//	errs := connect.NewErrorWriter()
//	nethttplock.WithErrorHandler(func(w http.ResponseWriter, r *http.Request, err error) {
//		code := connect.CodeInternal
//		outcome, known := core.OutcomeOf(err)
//		if known {
//			code = connect.Code(outcome.GRPC)
//		}
//		_ = errs.Write(w, r, connect.NewError(code, errors.New("refused: "+outcome.Code)))
//	})
//
// Idempotent suits the unary calls of the Connect protocol. For the gRPC and gRPC-Web
// protocols on the same handler every answer is an HTTP 200 with trailers, which cannot
// be replayed.
//
// # What to know
//
// net/http detects that a client has disconnected only after the request's body was
// read to its end. So a request with an unread body keeps waiting for its lock after
// its client has disconnected, to the end of its wait, and may then run without a
// client. Exception: the key is in the body (Form, JSONField), or a middleware before
// the lock has read the body. Keep waits short, or read the body first.
//
// The lock ends with the handler, not with the answer. A client that has read a long
// answer to its end can find the lock still held for a moment if it sends its next
// request on another connection; a short core.WithWait covers that. The lock does not
// end with the client either: when the client disconnects, the handler's context is
// cancelled as always, and the lock is held until the handler returns.
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
package nethttplock
