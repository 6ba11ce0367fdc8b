package nethttplock_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/nethttplock"
)

// The route of a mux behind http.StripPrefix is written as the comment of EndpointKey says.
func TestEndpointKeyBehindStripPrefix(t *testing.T) {
	t.Parallel()
	locks, got := locktest.New(t), ""
	inner, outer := http.NewServeMux(), http.NewServeMux()
	inner.Handle("POST /payments", nethttplock.Idempotent(locks.Locker, nethttplock.IdempotencyKey())(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			attempt, _ := core.AttemptFromContext(r.Context())
			got = attempt.Key()
		})))
	outer.Handle("/api/", http.StripPrefix("/api", inner))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/payments", nil)
	r.Header.Set("Idempotency-Key", "8e03")
	outer.ServeHTTP(httptest.NewRecorder(), r)
	if want, err := core.EndpointKey("POST", "/apiPOST /payments", "8e03"); got != want || err != nil {
		t.Errorf("the key is %q, not %q: %v", got, want, err)
	}
}
