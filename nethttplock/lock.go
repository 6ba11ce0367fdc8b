package nethttplock

import (
	"context"
	"net/http"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
	"github.com/reqlock/reqlock/internal/adapter/httpkey"
	"github.com/reqlock/reqlock/internal/adapter/httpreply"
	"github.com/reqlock/reqlock/internal/adapter/registration"
	"github.com/reqlock/reqlock/internal/bridge"
)

// A Key reads the lock key from a request. The functions of this package return Keys,
// core.KeyOf makes one from a function of your own, and core combines them:
//
//	nethttplock.PathValue("id").Named("account")
type Key = core.Key[*http.Request]

// Middleware runs the requests of a handler under a lock. key chooses the lock:
// requests with the same key run one at a time, in all processes that use the same
// Redis. The options are options of core, which are passed to l.With, and options of
// this package.
//
// Without core.WithWait a request is refused at once if another request holds its
// lock, as WriteError describes. The handler finds the lease in its request's
// context, which is cancelled if the lease is lost. The lock is freed when the
// handler returns, panics or ends its goroutine, and not before, even if the client
// disconnects. The handler gets the server's own ResponseWriter, so nothing but the
// handler answers if the lock is lost:
//
//	nethttplock.WriteError(w, r, context.Cause(r.Context()))
//
// Middleware panics if l is nil or key is the zero Key, if an option is invalid, has no
// effect on its requests or belongs to another adapter, and for a key of SharedWhen without
// core.WithWait above 0. The middleware is safe for concurrent use.
func Middleware(l *core.Locker, key Key, opts ...core.Option) func(http.Handler) http.Handler {
	l = adapter.Must(registration.LockView(self, "Middleware", bridge.HTTPLock, l, key, opts))
	onError, _ := errorHandler.Value(l)
	wait, mistakes := httpreply.NewWaitCheck(self, l), httpkey.NewMistakeCheck(self, l)

	return func(next http.Handler) http.Handler {
		registration.Must(self, next != nil, "Middleware needs a handler")
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			wait.Check(r)
			pass := httpattempt.Enter(r.Context())
			defer pass.Leave()
			ctx, release, err := core.Enter(pass.Inside(r.Context()), l, r, key)
			if err != nil {
				mistakes.Check(err)
				onError.refuse(w, r, err, pass)
				return
			}
			defer release()
			pass.Run()
			wait.CheckBody(r)
			locked := r.WithContext(ctx)
			defer copyToOuter(locked, r)
			next.ServeHTTP(w, locked)
			pass.Returned(context.Cause(ctx))
		})
	}
}

// copyToOuter copies from the inner request to the outer one: the form that the handler
// has parsed, and the pattern that a mux has matched. Middlewares outside
// need both, for example for logs.
func copyToOuter(locked, r *http.Request) {
	httpkey.CopyParsedForm(locked, r)
	if r.Pattern == "" && locked.Pattern != "" {
		r.Pattern = locked.Pattern
	}
}
