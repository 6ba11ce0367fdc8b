package nethttplock

import (
	"net/http"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// Middleware runs the requests of a handler under a lock. key chooses the lock:
// requests with the same key run one at a time, in all processes that use the same
// Redis. The options are options of core, which are passed to l.With, and options of
// this package.
//
// Without core.WithWait a request is refused at once if another request holds its lock,
// as WriteError describes. The handler finds the lease in its request's context
// (core.LeaseFromContext), which is cancelled if the lease is lost. Its Fence is 0
// without core.WithFencing. The lock is freed when the handler returns, panics or ends
// its goroutine, and not before, even if the client disconnects. The handler gets the
// server's own ResponseWriter, so nothing but the handler answers if the lock is lost:
//
//	nethttplock.WriteError(w, r, context.Cause(r.Context()))
//
// Middleware panics if l is nil or key is the zero Key, if an option is invalid, has no
// effect on its requests or belongs to another adapter, for a key of SharedWhen without
// core.WithWait above 0, and for Permits or Shared of a key with an option that excludes
// them: see core.WithPermits. The middleware is safe for concurrent use.
func Middleware(l *core.Locker, key Key, opts ...core.Option) func(http.Handler) http.Handler {
	lock := adapter.Must(adapter.NewLock(self, "Middleware", l, key, opts))
	onError, _ := errorHandler.Value(lock.Locker())

	return func(next http.Handler) http.Handler {
		self.Require(next != nil, "Middleware needs a handler")
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entry, err := lock.Enter(r.Context(), r)
			defer entry.Leave()
			if err != nil {
				onError.refuse(w, r, err, entry)
				return
			}
			serve(w, r, entry, next)
		})
	}
}

// serve serves a request that has entered a middleware.
func serve(w http.ResponseWriter, r *http.Request, entry adapter.Entry, next http.Handler) {
	running := entry.Request(r)
	defer copyToOuter(running, r)
	next.ServeHTTP(w, running)
	entry.Returned()
}

// copyToOuter copies from the inner request to the outer one: the form that the handler
// has parsed, and the pattern that a mux has matched. Middlewares outside
// need both, for example for logs.
func copyToOuter(locked, r *http.Request) {
	adapter.CopyForm(locked, r)
	if r.Pattern == "" && locked.Pattern != "" {
		r.Pattern = locked.Pattern
	}
}
