package nethttplock

import (
	"context"
	"log"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"sync/atomic"

	"github.com/reqlock/reqlock/core"
)

// ReverseProxy returns a handler for Idempotent that passes requests on through the proxy:
//
//	mux.Handle("POST /payments", nethttplock.Idempotent(locks, key)(nethttplock.ReverseProxy(proxy)))
//
// If the service behind the proxy could not be reached, nothing was sent to it, and the key
// is free: a copy runs. If anything may have been sent, the outcome is unknown, as after any
// 502. A *httputil.ReverseProxy alone answers 502 in both cases.
//
// What counts is whether any try got a connection, as httptrace reports it. The last error
// alone does not show that, because http.Transport sends a request with an Idempotency-Key
// again if a connection breaks that was used before. A Transport of the proxy that does not
// support httptrace leaves the outcome unknown. A decision of the handlers outside
// (core.Attempt.Decide) stays.
//
// ReverseProxy copies the proxy, and calls its ErrorHandler, if there is one. It panics if
// the proxy is nil. The handler is safe for concurrent use. Outside of an Idempotent it does
// what the proxy does.
func ReverseProxy(proxy *httputil.ReverseProxy) http.Handler {
	adapter.Must(proxy != nil, "ReverseProxy needs a proxy")
	traced := *proxy
	answer := proxy.ErrorHandler
	if answer == nil {
		answer = badGateway(proxy.ErrorLog)
	}
	traced.ErrorHandler = func(w http.ResponseWriter, r *http.Request, err error) {
		tries, _ := r.Context().Value(triesKey{}).(*tries)
		attempt, _ := core.AttemptFromContext(r.Context())
		if tries.sentNothing() && attempt.Decision() == core.Undecided {
			attempt.Decide(core.DropAnswer)
		}
		answer(w, r, err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tries := &tries{}
		ctx := context.WithValue(r.Context(), triesKey{}, tries)
		traced.ServeHTTP(w, r.WithContext(httptrace.WithClientTrace(ctx, tries.trace())))
	})
}

// badGateway returns what a ReverseProxy does without an ErrorHandler.
func badGateway(logger *log.Logger) func(http.ResponseWriter, *http.Request, error) {
	if logger == nil {
		logger = log.Default()
	}
	return func(w http.ResponseWriter, _ *http.Request, err error) {
		logger.Printf("http: proxy error: %v", err)
		w.WriteHeader(http.StatusBadGateway)
	}
}

// tries counts the tries of a proxy to pass one request on.
type tries struct{ begun, connected atomic.Int64 }

// triesKey is the key of tries in the context of a proxied request.
type triesKey struct{}

// trace returns the hooks that count.
func (t *tries) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { t.begun.Add(1) },
		GotConn: func(httptrace.GotConnInfo) { t.connected.Add(1) },
	}
}

// sentNothing reports whether no try got a connection. It is false for a Transport that does
// not call the hooks.
func (t *tries) sentNothing() bool { return t != nil && t.begun.Load() > 0 && t.connected.Load() == 0 }
