package errlock

import (
	"net/http"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/examples/adapter/errmux"
)

// Middleware runs the requests of a handler under the lock of a key. It panics if an argument is wrong.
func Middleware(l *core.Locker, key Key, opts ...core.Option) errmux.Middleware {
	lock := adapter.Must(adapter.NewLock(self, "Middleware", l, key, opts))
	onError, _ := errorHandler.Value(lock.Locker())
	return func(next errmux.Handler) errmux.Handler {
		return func(w http.ResponseWriter, r *http.Request) error {
			entry, err := lock.Enter(r.Context(), r)
			defer entry.Leave()
			if err != nil {
				refuse(w, r, err, onError, entry)
				return nil
			}
			return serve(w, r, entry, next)
		}
	}
}

// serve runs the handler of a request that has entered a middleware. It answers for a handler that has
// failed because its lock was lost. Behind an Idempotent, that one answers.
func serve(w http.ResponseWriter, r *http.Request, entry adapter.Entry, next errmux.Handler) error {
	running := entry.Request(r)
	defer adapter.CopyForm(running, r)
	err := next(w, running)
	entry.Returned()
	loss := adapter.LossOf(running.Context(), err, errmux.StatusOf(err))
	switch {
	case err == nil, loss == nil: // a handler that returns nil has answered
		return err
	case entry.IsInside():
		return loss
	}
	adapter.WriteRefusal(w, loss)
	return nil
}
