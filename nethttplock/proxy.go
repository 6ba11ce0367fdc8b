package nethttplock

import (
	"net/http"
	"net/http/httputil"

	"github.com/reqlock/reqlock/adapter"
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
// All tries for a request must go through a ReverseProxy. From Go 1.27 on, one that cannot reach its
// service closes the body of the request, so the next try needs a body of its own.
//
// ReverseProxy copies the proxy, and calls its ErrorHandler, if there is one. An ErrorHandler that
// serves the request by other means, such as a queue, decides core.EndUnknown before. If neither it
// nor a middleware answers, the outcome is unknown. ReverseProxy panics if the proxy is nil. The
// handler is safe for concurrent use. Outside of an Idempotent it does what the proxy does.
func ReverseProxy(proxy *httputil.ReverseProxy) http.Handler {
	self.Require(proxy != nil, "ReverseProxy needs a proxy")
	return adapter.ReverseProxy(proxy)
}
