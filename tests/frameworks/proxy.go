package frameworks

import (
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// proxyRoutes passes payments on to a service. A payment with one Idempotency-Key runs once.
func proxyRoutes(locks *core.Locker, service *url.URL) http.Handler {
	once := nethttplock.Idempotent(locks, core.Join(nethttplock.BasicUser(), nethttplock.IdempotencyKey()))
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(service) }}
	mux := http.NewServeMux()
	mux.Handle("POST /payments", once(nethttplock.ReverseProxy(proxy)))
	return mux
}
