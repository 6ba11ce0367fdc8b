// Package nethttplock runs the requests of net/http handlers under a lock in
// Redis: those with the same key run one at a time, in all processes of a
// service.
//
//	locks := core.Must(core.New(rdb))
//	oneAtATime := nethttplock.Middleware(locks, nethttplock.PathValue("id"), core.WithWait(2*time.Second))
//
//	mux.Handle("POST /accounts/{id}/transfer", oneAtATime(transfer))
//
// It is a plain func(http.Handler) http.Handler, so it serves chi, gorilla and
// Connect too.
//
// # What happens to a request
//
// The key is read from the request, the lock is taken in Redis, the handler
// runs, and the lock is freed when it returns. A request that does not get its
// lock is answered, and its handler does not run: 409 where another request
// holds the lock, 503 where Redis cannot be asked, 400 where the request has no
// usable key. See WriteError for the answers and WithErrorHandler for your own.
//
// The handler's context is cancelled if the lock is lost while it runs;
// context.Cause says why. Its answer stands as it is. FromContext gives it the
// lease. The ResponseWriter is the server's own, so http.Flusher, http.Hijacker
// and http.ResponseController work as without a lock.
//
// # Where keys come from
//
// Whoever chooses the key chooses whom to hold up. Take it from the
// authenticated user (ContextValue, ContextValueAs, BasicUser) or from the
// resource in the path that the user was found to have a right to, and put the
// lock behind the middlewares that find out. A header, a query or a body alone
// lets any client lock the key of any other.
//
// A key is the whole name of the lock: account 42 and user 42 are the same one.
// core.Named keeps them apart:
//
//	core.Named("account", nethttplock.PathValue("id"))
//
// Two routes that use the same name and key exclude each other, which is what
// the GET, the POST and the DELETE of one account may need.
//
// An Idempotency-Key is chosen by the client, and another client may choose the
// same. Join it with who the client is:
//
//	core.Join(nethttplock.ContextValue(userKey{}), nethttplock.IdempotencyKey())
//
// What is read from a request as a key has at most 512 bytes and no control
// characters. What is there twice, so that the handler might read another one
// than the lock, is refused with core.ErrInvalidKey.
//
// A function of your own is a KeyFunc as well. For gorilla's mux, which knows
// nothing of PathValue:
//
//	core.Of(func(r *http.Request) string { return mux.Vars(r)["id"] })
//
// # Where to put it
//
// From the outside inwards: recover, log, CORS, authentication, validation,
// rate limit, lock, handler. Whatever can refuse a request refuses it before it
// has the lock.
//
// Wrap handlers, not the mux: the wildcards of a pattern are known only behind
// it, and around it PathValue is empty, which is 400 for every request. With
// chi, use With or Group instead of a Use at the top. With a key that does not
// need the route a whole mux can be wrapped; then a request for no route, too,
// is locked first, and is refused with 400 instead of 404 if it has no key.
//
// A middleware that decompresses bodies belongs before the lock if the key is
// in the body, and so does http.MaxBytesHandler.
//
// TimeoutHandler belongs around the lock, not inside it:
//
//	http.TimeoutHandler(lock(h), time.Second, "") // right: the lock is held until h returns
//	lock(http.TimeoutHandler(h, time.Second, "")) // wrong: it is freed while h still runs
//
// # What to know
//
// net/http notices that a client has left only once the request's body was read
// to its end. So a request with a body, waiting for its lock, is not refused
// when its client leaves, unless the key is in the body (Form, JSONField) or a
// middleware before the lock has read it: it waits to the end of its wait, and
// may then run for nobody. Keep waits short, or read the body first.
//
// The lock ends with the handler, not with the answer. A client that has read
// the whole of a long answer can find the lock still held for a moment when it
// comes back on another connection; a short core.WithWait hides it. It does not
// end with the client either: when that has gone, the handler's context is
// cancelled as always, and the lock is held until the handler returns.
//
// A stream or a hijacked connection holds the lock for as long as its handler
// runs.
//
// Two middlewares with the same key on one request, such as one for a group and
// one for a route, take one lock and free it once. With different keys they
// take one after the other, in the order of the middlewares; two requests that
// take them in different orders would wait for each other until their waits are
// over. Also takes several keys at once without that.
package nethttplock
