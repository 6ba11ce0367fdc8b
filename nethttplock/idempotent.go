package nethttplock

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
	"github.com/reqlock/reqlock/internal/adapter/httpkey"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// Idempotent runs a request once for its key. A copy that arrives after the request
// has ended gets the first answer. A copy that arrives earlier is refused, or waits
// with core.WithWait. See the package comment on idempotent endpoints.
//
//	pay := nethttplock.Idempotent(locks, core.Join(nethttplock.ContextValue(userKey{}), nethttplock.IdempotencyKey()))
//	mux.Handle("POST /payments", auth(pay(payments)))
//
// Idempotent applies to POST and PATCH: see core.WithMethods. The same key with another
// path, query, media type or body is refused with core.ErrMismatch: see
// core.WithFingerprint. A request without a key is refused: see core.WithOptionalKey. The keys
// of two routes are independent. The route is r.Pattern. If r.Pattern is empty or
// ends in a slash, the route is the path of the URL. A prefix that http.StripPrefix
// has removed belongs to the route too.
//
// The handler's answer is first stored in Redis, and then sent. Until then a recorder
// buffers it; the recorder is the handler's ResponseWriter. The handler finds the
// lease and the attempt in its request's context: see core.AttemptFromContext. With the
// attempt it can decide what is stored.
// The handler goes on if its client disconnects: see core.WithClientCancel.
//
// Idempotent panics where Middleware does, for a key of core.All or with Permits, Shared or
// SharedWhen, and for a Locker that runs requests without Redis (core.WithFailOpen), shares
// its locks (core.WithPermits and core.WithShared) or is from core.NewQuorum. The middleware
// is safe for concurrent use.
func Idempotent(l *core.Locker, key Key, opts ...core.Option) func(http.Handler) http.Handler {
	endpoint := adapter.Must(httpattempt.New(self, l, key, httpkey.ReadBody, opts))
	onError, _ := errorHandler.Value(endpoint.Locker())

	return func(next http.Handler) http.Handler {
		registration.Must(self, next != nil, "Idempotent needs a handler")
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			pass := httpattempt.Enter(r.Context())
			defer pass.Leave()
			if pass != nil {
				outer := r
				r = r.WithContext(pass) //nolint:contextcheck // pass is derived from its context
				defer copyToOuter(r, outer)
			}
			exchange, err := endpoint.Begin(r, r, r.Pattern, routeOf(r))
			if err == nil || errors.Is(err, core.ErrSkip) {
				pass.Run()
				serve(w, r, exchange, next)
				pass.Returned(context.Cause(r.Context()))
				pass.Leave()
				err = exchange.CutOff()
			}
			if err != nil {
				onError.refuse(w, r, err, pass)
			}
		})
	}
}

// serve serves a request that is not refused. exchange is nil if it runs as without Idempotent.
func serve(w http.ResponseWriter, r *http.Request, exchange *httpattempt.Exchange, next http.Handler) {
	switch {
	case exchange == nil:
		next.ServeHTTP(w, r)
	case exchange.Replayed():
		exchange.Replay(w)
	default:
		exchange.Run(w, r, func(w *httpattempt.Recorder, running *http.Request) {
			defer copyToOuter(running, r)
			next.ServeHTTP(w, running)
		})
	}
}

// routeOf returns the route of a request. A pattern with a slash at its end matches
// all paths below it. It does not identify the route inside a mux that is mounted
// there, so the path is added.
func routeOf(r *http.Request) string {
	if strings.HasSuffix(r.Pattern, "/") {
		return httpattempt.RouteOf(r, r.Pattern+" "+r.URL.Path)
	}
	return httpattempt.RouteOf(r, r.Pattern)
}
