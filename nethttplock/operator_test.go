package nethttplock_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/nethttplock"
)

func TestEndpointKeyOfAPattern(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ method, pattern, want string }{
		{"post", "/payments", "POST"},
		{"POST", "POST /payments", "POST"},
		{"", "POST /payments", "POST"},
		{"", "PATCH example.com/payments", "PATCH"},
		{"PATCH", "example.com/api/ /api/payments", "PATCH"},
	} {
		got, err := nethttplock.EndpointKey(test.method, test.pattern, "8e03")
		if want := core.EndpointKey(test.want, test.pattern, "8e03"); got != want || err != nil {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
	for _, test := range []struct{ method, pattern, want string }{
		{"PATCH", "POST /payments", `the pattern "POST /payments" has another method than "PATCH"`},
		{"", "/payments", "the method is empty"},
		{"POST", "", "the route is empty"},
	} {
		if got, err := nethttplock.EndpointKey(test.method, test.pattern, "8e03"); got != "" || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
}

// The route of a mux behind http.StripPrefix is written as the comment of EndpointKey says.
func TestEndpointKeyBehindStripPrefix(t *testing.T) {
	t.Parallel()
	locks, got := locktest.New(t), ""
	inner, outer := http.NewServeMux(), http.NewServeMux()
	inner.Handle("POST /payments", nethttplock.Idempotent(locks.Locker, nethttplock.IdempotencyKey())(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			attempt, _ := nethttplock.AttemptFromContext(r.Context())
			got = attempt.Key()
		})))
	outer.Handle("/api/", http.StripPrefix("/api", inner))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/payments", nil)
	r.Header.Set("Idempotency-Key", "8e03")
	outer.ServeHTTP(httptest.NewRecorder(), r)
	if want, err := nethttplock.EndpointKey("POST", "/apiPOST /payments", "8e03"); got != want || err != nil {
		t.Errorf("the key is %q, not %q: %v", got, want, err)
	}
}
