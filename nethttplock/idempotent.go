package nethttplock

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
	"github.com/reqlock/reqlock/internal/adapter/httpkey"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// Idempotent runs a request once for its key: a copy of it that comes later gets
// the first one's answer, and one that comes meanwhile is refused, or waits with
// core.WithWait. See the package comment on idempotent endpoints.
//
//	pay := nethttplock.Idempotent(locks, core.Join(nethttplock.ContextValue(userKey{}), nethttplock.IdempotencyKey()))
//	mux.Handle("POST /payments", auth(pay(payments)))
//
// It is for POST and PATCH: see WithMethods. The same key with another path,
// query, media type or body is refused with core.ErrMismatch: see WithFingerprint. A request
// without key is refused, or see WithOptionalKey. The keys of two routes have
// nothing to do with each other: a route is what r.Pattern says, or the URL's
// path where that is empty or ends in a slash, behind what http.StripPrefix has cut
// off.
//
// The handler's answer is kept in Redis, and only then sent. Until then a
// recorder holds it, which is the handler's ResponseWriter. The handler finds the
// lease in its request's context, and its attempt with AttemptFromContext, which
// lets it decide by itself what is kept.
//
// Idempotent panics where Middleware does, and with a Locker that runs requests
// without Redis (core.WithFailOpen), or is one of core.NewQuorum. What it returns is
// safe for concurrent use.
func Idempotent(l *core.Locker, key KeyFunc, opts ...Option) func(http.Handler) http.Handler {
	adapter.Must(l != nil, "Idempotent needs a locker")
	adapter.Must(key != nil, "Idempotent needs a key function")
	c := &config{}
	l = l.With(registration.Apply(adapter, c, opts)...)
	adapter.Must(len(c.also) == 0, "Also is an option of Middleware: put a Middleware behind Idempotent")
	endpoint, err := httpattempt.New(adapter, l, key, httpkey.ReadBody, c.settings)
	if err != nil {
		panic(err)
	}

	return func(next http.Handler) http.Handler {
		adapter.Must(next != nil, "Idempotent needs a handler")
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			exchange, err := endpoint.Begin(r, r, routeOf(r))
			switch {
			case errors.Is(err, core.ErrSkip):
				next.ServeHTTP(w, r)
			case err != nil:
				c.refuse(w, r, err)
			case exchange.Replayed():
				exchange.Replay(w)
			default:
				exchange.Run(w, r, func(w *httpattempt.Recorder, running *http.Request) {
					defer handUp(running, r)
					next.ServeHTTP(w, running)
				})
			}
		})
	}
}

// routeOf names the route of a request. A pattern with a slash at its end is that
// of all paths below it, and says nothing of the route of a mux that is mounted
// there.
func routeOf(r *http.Request) string {
	if strings.HasSuffix(r.Pattern, "/") {
		return httpattempt.RouteOf(r, r.Pattern+" "+r.URL.Path)
	}
	return httpattempt.RouteOf(r, r.Pattern)
}

// AttemptFromContext returns the attempt under which the handler of an Idempotent
// runs, and false if it runs without one:
//
//	if attempt, ok := nethttplock.AttemptFromContext(r.Context()); ok {
//		attempt.Decide(core.Uncertain)
//	}
func AttemptFromContext(ctx context.Context) (*core.Attempt, bool) {
	return core.AttemptFromContext(ctx)
}
