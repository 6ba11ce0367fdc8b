package conformance

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/examples/adapter/errlock"
	"github.com/reqlock/reqlock/examples/adapter/errmux"
)

// overErrmux is the example of docs/writing-an-adapter.md.
func overErrmux() *framework {
	return &framework{
		name:      "errlock",
		serve:     serveErrmux,
		endpoint:  errmuxEndpoint,
		row:       httpRow,
		forbidden: outcome{status: http.StatusForbidden, code: "key_error"},
		hooked:    outcome{status: http.StatusTeapot},
	}
}

var ofErrmux = adapter[*http.Request]{
	header:      errlock.Header,
	idempotency: errlock.IdempotencyKey,
	body:        func() errlock.Key { return errlock.JSONField("id") },
	isRead:      errlock.IsRead,
	hook: func(h hook) core.Option {
		return errlock.WithErrorHandler(func(w http.ResponseWriter, _ *http.Request, _ error) {
			if h == ownHook {
				w.WriteHeader(http.StatusTeapot)
				_, _ = io.WriteString(w, hookText)
			}
		})
	},
}

// serveErrmux registers all locks on the route, since errmux has no groups.
func serveErrmux(t *testing.T, locks *core.Locker, r route) server {
	t.Helper()
	var stack []errmux.Middleware
	for _, l := range slices.Concat(r.group, r.locks) {
		stack = append(stack, errlock.Middleware(locks, ofErrmux.lockKey(l), ofErrmux.options(l)...))
	}
	mux := &errmux.Mux{}
	mux.Handle(groupPath+routePath, func(w http.ResponseWriter, req *http.Request) error {
		c := &errmuxCall{netHTTPCall: netHTTPCall{httpHandling{w, req}}}
		r.handler(c)
		if !c.replied && c.err == nil {
			c.err = req.Context().Err() // what a handler returns that its lock has cut off
		}
		return c.err
	}, stack...)
	return serveHTTP(t, outside(r, mux))
}

// An errmuxCall is a call whose handler may return an error.
type errmuxCall struct {
	netHTTPCall
	replied bool
	err     error
}

func (c *errmuxCall) Reply(text string) {
	c.replied = true
	c.netHTTPCall.Reply(text)
}

func (c *errmuxCall) Refuse(text string) {
	c.err = &errmux.Error{Status: http.StatusConflict, Text: text}
}

// errmuxEndpoint wraps a handler.
func errmuxEndpoint(locks *core.Locker, e endpoint) http.Handler {
	around := []errmux.Middleware{errlock.Idempotent(locks, netHTTPIdempotency.key(e), netHTTPIdempotency.options(e)...)}
	if e.inside != nil {
		around = append(around, errlock.Idempotent(locks, netHTTPIdempotency.user, needless))
		around = append(around, errlock.Middleware(locks, ofErrmux.lockKey(*e.inside), ofErrmux.options(*e.inside)...))
	}
	h := func(w http.ResponseWriter, r *http.Request) (err error) {
		attempt, _ := core.AttemptFromContext(r.Context())
		e.handler(invocation{
			ResponseWriter: w, r: r, attempt: attempt,
			fail: func(status int, cause error) {
				if err = cause; status != 0 {
					err = errors.Join(&errmux.Error{Status: status, Text: "failed"}, cause)
				}
			},
			bare: w.WriteHeader,
		})
		return err
	}
	mux := &errmux.Mux{}
	mux.Handle(paymentsPath, h, around...)
	mux.Handle(refundsPath, h, around...)
	return outsideOf(e, mux)
}
