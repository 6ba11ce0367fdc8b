package conformance

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

func overNetHTTP() *framework {
	return &framework{
		name:     "nethttplock",
		serve:    serveNetHTTP,
		endpoint: netHTTPEndpoint,
		lacks: map[feature]string{
			seenAnswers:    "a lock does not replace the ResponseWriter",
			returnedErrors: "handlers return nothing",
		},
		row:       httpRow,
		forbidden: outcome{status: http.StatusForbidden, code: "key_error"},
		hooked:    outcome{status: http.StatusTeapot},
	}
}

var netHTTP = adapter[*http.Request]{
	header:      nethttplock.Header,
	idempotency: nethttplock.IdempotencyKey,
	body:        func() nethttplock.Key { return nethttplock.JSONField("id") },
	isRead:      nethttplock.IsRead,
	hook: func(h hook) core.Option {
		return nethttplock.WithErrorHandler(func(w http.ResponseWriter, _ *http.Request, _ error) {
			if h == ownHook {
				w.WriteHeader(http.StatusTeapot)
				_, _ = io.WriteString(w, hookText)
			}
		})
	},
}

// serveNetHTTP wraps handlers, and the mux of the group.
func serveNetHTTP(t *testing.T, locks *core.Locker, r route) server {
	t.Helper()
	stack := func(stack []lock, next http.Handler) http.Handler {
		for i := len(stack) - 1; i >= 0; i-- {
			l := stack[i]
			next = nethttplock.Middleware(locks, netHTTP.lockKey(l), netHTTP.options(l)...)(next)
		}
		return next
	}
	group := http.NewServeMux()
	group.Handle(groupPath+routePath, stack(r.locks, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.handler(netHTTPCall{httpHandling{w, req}})
	})))
	mux := http.NewServeMux()
	mux.Handle(groupPath+"/", stack(r.group, group))
	return serveHTTP(t, outside(r, mux))
}

// outside wraps the mux of a route in what is outside of all locks.
func outside(r route, h http.Handler) http.Handler {
	if r.outer != nil {
		h = around(r.outer, h)
	}
	if r.recovers {
		h = recovering(h)
	}
	return h
}

// around wraps a handler in a middleware of the case.
func around(outer func(frame), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		outer(&netHTTPFrame{w, r, next})
	})
}

// recovering is a recovery middleware: net/http has none of its own.
func recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

type netHTTPFrame struct {
	w    http.ResponseWriter
	r    *http.Request
	next http.Handler
}

func (f *netHTTPFrame) Context() context.Context       { return f.r.Context() }
func (f *netHTTPFrame) SetContext(ctx context.Context) { f.r = f.r.WithContext(ctx) }
func (f *netHTTPFrame) Request() *http.Request         { return f.r }
func (f *netHTTPFrame) Next()                          { f.next.ServeHTTP(f.w, f.r) }

type netHTTPCall struct{ httpHandling }

func (c netHTTPCall) Lease() (*core.Lease, bool) { return core.LeaseFromContext(c.r.Context()) }
func (c netHTTPCall) Leases() []*core.Lease      { return core.LeasesFromContext(c.r.Context()) }
func (c netHTTPCall) Reply(text string)          { _, _ = io.WriteString(c.w, text) }

func (c netHTTPCall) Refuse(text string) {
	c.w.WriteHeader(http.StatusConflict)
	_, _ = io.WriteString(c.w, text)
}

var netHTTPIdempotency = idempotency[*http.Request]{
	request: func(r *http.Request) *http.Request { return r },
	user:    core.Join(nethttplock.BasicUser(), nethttplock.IdempotencyKey()),
	tenant:  core.Join(nethttplock.Host(), nethttplock.BasicUser(), nethttplock.IdempotencyKey()),
}

// netHTTPEndpoint wraps a handler.
func netHTTPEndpoint(locks *core.Locker, e endpoint) http.Handler {
	idempotent := nethttplock.Idempotent(locks, netHTTPIdempotency.key(e), netHTTPIdempotency.options(e)...)
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attempt, _ := core.AttemptFromContext(r.Context())
		e.handler(invocation{
			ResponseWriter: w, r: r, attempt: attempt,
			fail: func(status int, _ error) { http.Error(w, "failed", status) },
			bare: w.WriteHeader,
		})
	})
	if e.inside != nil {
		h = nethttplock.Middleware(locks, netHTTP.lockKey(*e.inside), netHTTP.options(*e.inside)...)(h)
		h = nethttplock.Idempotent(locks, netHTTPIdempotency.user, needless)(h)
	}
	h = idempotent(h)
	mux := http.NewServeMux()
	mux.Handle(paymentsPath, h)
	mux.Handle(refundsPath, h)
	return outsideOf(e, mux)
}

// outsideOf wraps the mux of an endpoint in what is outside of Idempotent.
func outsideOf(e endpoint, h http.Handler) http.Handler {
	mux := h
	if e.outer != nil {
		h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if e.outer(w, r) {
				mux.ServeHTTP(w, r)
			}
		})
	}
	if e.recovers {
		h = recovering(h)
	}
	return h
}
