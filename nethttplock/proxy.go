package nethttplock

import (
	"context"
	"log"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"sync/atomic"

	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// ReverseProxy returns a handler for Idempotent that passes requests on through the proxy:
//
//	mux.Handle("POST /payments", nethttplock.Idempotent(locks, key)(nethttplock.ReverseProxy(proxy)))
//
// If the service behind the proxy could not be reached, nothing was sent to it. If the
// request then ends with 502, 503 or 504 of the proxy, the key is free: a copy runs. If
// anything may have been sent, in this try or in another one for the same request, the outcome
// is unknown, as after any 502. A *httputil.ReverseProxy alone leaves it unknown in both cases.
//
// What counts is whether any try got a connection, as httptrace reports it. The last error
// alone does not show that, because http.Transport sends a request with an Idempotency-Key
// again if a connection breaks that was used before. If it has done so, an answer that would free
// the key leaves the outcome unknown, too. Each try of the proxy's Transport must
// support httptrace. If none does, the outcome is unknown.
//
// A middleware in between that compresses the answer, or buffers one without a body, hides that it
// is the proxy's. Then the outcome is unknown.
//
// All tries for a request must go through a ReverseProxy. It copies the proxy, and calls its
// ErrorHandler, if there is one. An ErrorHandler that serves the request by other means, such as a
// queue, decides core.EndUnknown before. If neither it nor a middleware answers, the outcome is
// unknown. ReverseProxy panics if the proxy is nil. The handler is safe for concurrent use.
// Outside of an Idempotent it does what the proxy does.
func ReverseProxy(proxy *httputil.ReverseProxy) http.Handler {
	registration.Must(self, proxy != nil, "ReverseProxy needs a proxy")
	traced := *proxy
	answer := proxy.ErrorHandler
	if answer == nil {
		answer = badGateway(proxy.ErrorLog)
	}
	traced.ErrorHandler = func(w http.ResponseWriter, r *http.Request, err error) {
		tries, _ := r.Context().Value(triesKey{}).(*tries)
		if tries == nil || tries.pass == nil {
			answer(w, r, err)
			return
		}
		watched := tries.pass.Watch(w)
		answer(watched, r, err)
		if !tries.sentNothing() || !watched.Answered() {
			tries.pass.Break() // whatever else answers: without an answer, net/http sends an empty 200
			return
		}
		_, _ = watched.Write(nil) // Gin delays a status without a body
		tries.pass.NotSent(watched)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tries := &tries{pass: httpattempt.Enter(r.Context())}
		defer tries.pass.Leave()
		tries.pass.Run()
		ctx := context.WithValue(tries.pass.Inside(r.Context()), triesKey{}, tries)
		traced.ServeHTTP(w, r.WithContext(httptrace.WithClientTrace(ctx, tries.trace())))
		if tries.connected.Load() > 1 {
			tries.pass.Resent()
		}
		tries.pass.Returned(context.Cause(r.Context()))
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
type tries struct {
	pass             *httpattempt.Pass
	begun, connected atomic.Int64
}

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
func (t *tries) sentNothing() bool { return t.begun.Load() > 0 && t.connected.Load() == 0 }
