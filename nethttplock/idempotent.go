package nethttplock

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// Idempotent runs a request once for its key. A copy that arrives after the request
// has ended gets the first answer, with the header "Idempotent-Replayed: true". A copy that
// arrives earlier is refused, or waits with core.WithWait. See the package comment on
// idempotent endpoints.
//
//	pay := nethttplock.Idempotent(locks, core.Join(nethttplock.ContextValue(userKey{}), nethttplock.IdempotencyKey()))
//	mux.Handle("POST /payments", auth(pay(payments)))
//
// Idempotent applies to POST and PATCH: see core.WithMethods. The same key with another
// path, query, media type or body is refused with core.ErrMismatch: see
// core.WithFingerprint. A request without a key is refused: see core.WithOptionalKey. The keys
// of two routes are independent. The route is r.Pattern. If r.Pattern is empty or
// ends in a slash, the route is the path of the URL. A prefix that http.StripPrefix
// has removed belongs to the route too. Put Idempotent behind the mux: events have the name of the
// pattern, if it is known, and never that of a path. See core.Event.
//
// The handler's answer is first stored in Redis, and then sent. Until then a recorder
// buffers it; the recorder is the handler's ResponseWriter. The handler finds the
// lease and the attempt in its request's context: see core.AttemptFromContext. With the
// attempt it can decide what is stored.
// The handler goes on if its client disconnects: see core.WithClientCancel.
//
// Put http.TimeoutHandler outside Idempotent: inside, its 503 frees the key while the
// handler still runs, and a copy runs beside it, unless a Middleware stands inside the timeout. If
// the TimeoutHandler is the handler itself, the observer gets one core.Warned event of that.
//
// Idempotent panics where Middleware does. It also panics for a key of core.All or with
// Permits, Shared or SharedWhen, and for a Locker that runs requests without Redis
// (core.WithFailOpen), shares its locks (core.WithPermits and core.WithShared) or is from
// core.NewQuorum. The middleware is safe for concurrent use.
func Idempotent(l *core.Locker, key Key, opts ...core.Option) func(http.Handler) http.Handler {
	once := adapter.Must(adapter.NewIdempotentHTTP(self, "Idempotent", l, key, accessors(), opts))
	onError, _ := errorHandler.Value(once.Locker())

	return func(next http.Handler) http.Handler {
		self.Require(next != nil, "Idempotent needs a handler")
		isTimeout := reflect.TypeOf(next) == timeoutHandler
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entry, exchange, err := once.Begin(r.Context(), r)
			defer entry.Leave()
			switch {
			case err != nil:
			case exchange == nil:
				serve(w, r, entry, next)
			case exchange.Replayed():
				exchange.Replay(w)
			default:
				if isTimeout {
					exchange.SetTimeoutHandler()
				}
				err = exchange.Run(w, r, func(w *adapter.Recorder, running *http.Request) {
					defer copyToOuter(running, r)
					next.ServeHTTP(w, running)
				})
			}
			if err != nil {
				onError.refuse(w, r, err, entry)
			}
		})
	}
}

// NewAnswer returns an answer for core.Answered, with which an operator ends the unknown outcome of
// a request, on a route of any HTTP framework. Copies of the request get the answer as if a handler
// had given it: headers that an Idempotent does not replay are left out, without an error. replayed
// are the names that the route has in core.WithReplayedHeaders. The caller may change header and
// body afterwards.
//
// The error says which argument is wrong: a status that is not of 200 to 999, a body with a
// status that has none, or a name in replayed that is never replayed, such as Set-Cookie.
func NewAnswer(status int, header http.Header, body []byte, replayed ...string) (core.Answer, error) {
	return adapter.NewHTTPAnswer(self, adapter.HTTPAnswer{Status: status, Header: header, Body: body}, replayed...)
}

// timeoutHandler is the type of an http.TimeoutHandler.
var timeoutHandler = reflect.TypeOf(http.TimeoutHandler(nil, 0, ""))

// accessors returns how the requests are read.
func accessors() adapter.Accessors[*http.Request] {
	a := adapter.NetHTTP(func(r *http.Request) *http.Request { return r }, func(r *http.Request) string { return r.Pattern })
	a.Route = routeOf
	return a
}

// routeOf returns the route of a request. A pattern with a slash at its end matches
// all paths below it. It does not identify the route inside a mux that is mounted
// there, so the path is added.
func routeOf(r *http.Request) string {
	if strings.HasSuffix(r.Pattern, "/") {
		return adapter.Route(r, r.Pattern+" "+r.URL.Path)
	}
	return adapter.Route(r, r.Pattern)
}
