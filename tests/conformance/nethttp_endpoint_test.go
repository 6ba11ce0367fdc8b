package conformance

import (
	"net/http"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

var netHTTPIdempotency = idempotency[*http.Request, nethttplock.Option]{
	request:     func(r *http.Request) *http.Request { return r },
	user:        core.Join(nethttplock.BasicUser(), nethttplock.IdempotencyKey()),
	tenant:      core.Join(nethttplock.Host(), nethttplock.BasicUser(), nethttplock.IdempotencyKey()),
	methods:     nethttplock.WithMethods,
	optionalKey: nethttplock.WithOptionalKey,
	fingerprint: nethttplock.WithFingerprint,
	none:        nethttplock.WithoutFingerprint,
	maxBody:     nethttplock.WithMaxBody,
	uncertain:   nethttplock.WithUncertain,
	free:        nethttplock.FreeOnFailure,
	stored:      nethttplock.WithStored,
	replayed:    nethttplock.WithReplayedHeaders,
}

// netHTTPEndpoint wraps a handler.
func netHTTPEndpoint(locks *core.Locker, e endpoint) http.Handler {
	idempotent := nethttplock.Idempotent(locks, netHTTPIdempotency.key(e), netHTTPIdempotency.options(e)...)
	h := idempotent(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attempt, _ := nethttplock.AttemptFromContext(r.Context())
		e.handler(invocation{
			ResponseWriter: w, r: r, attempt: attempt,
			fail: func(status int) { http.Error(w, "failed", status) },
			bare: w.WriteHeader,
		})
	}))
	mux := http.NewServeMux()
	mux.Handle(paymentsPath, h)
	mux.Handle(refundsPath, h)
	var outer http.Handler = mux
	if e.outer != nil {
		outer = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if e.outer(w, r) {
				mux.ServeHTTP(w, r)
			}
		})
	}
	if e.recovers {
		outer = recovering(outer)
	}
	return outer
}
