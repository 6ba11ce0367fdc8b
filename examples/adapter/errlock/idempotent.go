package errlock

import (
	"net/http"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/examples/adapter/errmux"
)

// Idempotent runs a request once for its key. Copies get its answer. It panics if an argument is wrong.
func Idempotent(l *core.Locker, key Key, opts ...core.Option) errmux.Middleware {
	once := adapter.Must(adapter.NewIdempotentHTTP(self, "Idempotent", l, key, accessors(), opts))
	onError, _ := errorHandler.Value(once.Locker())
	return func(next errmux.Handler) errmux.Handler {
		return func(w http.ResponseWriter, r *http.Request) error {
			entry, exchange, err := once.Begin(r.Context(), r)
			defer entry.Leave()
			switch {
			case err != nil:
			case exchange == nil:
				return serve(w, r, entry, next)
			case exchange.Replayed():
				exchange.Replay(w)
			default:
				err = exchange.Run(w, r, func(w *adapter.Recorder, running *http.Request) {
					defer adapter.CopyForm(running, r)
					run(w, running, exchange, next)
				})
			}
			if err != nil {
				refuse(w, r, err, onError, entry)
			}
			return nil
		}
	}
}

// accessors returns how the requests are read.
func accessors() adapter.Accessors[*http.Request] {
	return adapter.NetHTTP(func(r *http.Request) *http.Request { return r }, func(r *http.Request) string { return r.Pattern })
}

// run runs the handler, and has its error answered on the recorder, so that this answer is stored too.
func run(w http.ResponseWriter, r *http.Request, exchange *adapter.Exchange, next errmux.Handler) {
	err := next(w, r)
	if exchange.SetReturned(err, errmux.StatusOf(err)) {
		errmux.Fail(w, r, err)
		exchange.SetFailed(errmux.StatusOf(err)) // without effect if there is an answer
	}
}
