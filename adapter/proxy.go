package adapter

import (
	"context"
	"log"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"sync/atomic"
)

// ReverseProxy is nethttplock.ReverseProxy, which describes it.
func ReverseProxy(proxy *httputil.ReverseProxy) http.Handler {
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
		watched := tries.pass.watch(w)
		answer(watched, r, err)
		if !tries.sentNothing() || !watched.Answered() {
			tries.pass.interrupt() // whatever else answers: without an answer, net/http sends an empty 200
			return
		}
		_, _ = watched.Write(nil) // Gin delays a status without a body
		tries.pass.notSent(watched)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tries := &tries{pass: newPass(r.Context(), false)}
		defer tries.pass.leave()
		tries.pass.run()
		ctx := context.WithValue(tries.pass.within(r.Context()), triesKey{}, tries)
		traced.ServeHTTP(w, r.WithContext(httptrace.WithClientTrace(ctx, tries.trace())))
		if tries.connected.Load() > 1 {
			tries.pass.resend()
		}
		tries.pass.returned(context.Cause(r.Context()))
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
	pass             *pass
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
