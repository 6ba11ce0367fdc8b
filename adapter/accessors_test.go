package adapter

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The name of a route begins with the prefix that a middleware has removed from the path.
func TestRoute(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		target, path, pattern string
		want                  string
	}{
		"a pattern":                 {"/payments/7", "/payments/7", "POST /payments/{id}", "POST /payments/{id}"},
		"no pattern":                {"/payments/7", "/payments/7", "", "/payments/7"},
		"a prefix that was cut off": {"/api/payments/7", "/payments/7", "/payments/{id}", "/api/payments/{id}"},
		"a path that was rewritten": {"/old/7", "/new/7", "/new/{id}", "/old/7/new/{id}"},
		"a query":                   {"/api/payments?a=/payments", "/payments", "/payments", "/api/payments"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, test.target, nil)
			r.URL.Path = test.path
			if got := Route(r, test.pattern); got != test.want {
				t.Errorf("%q, not %q", got, test.want)
			}
		})
	}
	unread := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments", nil)
	unread.RequestURI = ""
	if got := Route(unread, "/payments"); got != "/payments" {
		t.Errorf("a request that no server has read has the route %q", got)
	}
}

// A route has one name, which a request does not make again.
func TestNameOfARoute(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the allocations of all goroutines
	for _, test := range []struct{ method, pattern, want string }{
		{"POST", "/payments/{id}", "POST /payments/{id}"},
		{"PATCH", "/payments/{id}", "PATCH /payments/{id}"},
		{"POST", "POST /payments", "POST /payments"},
		{"POST", "POST\t/payments", "POST\t/payments"},
		{"POST", "example.com/a b", "POST example.com/a b"},
		{"POST", "", ""}, // no mux has matched it
	} {
		var names routeNames
		if got := names.of(test.method, test.pattern); got != test.want {
			t.Errorf("%q, not %q", got, test.want)
		}
		again := func() { _ = names.of(test.method, test.pattern) }
		if n := testing.AllocsPerRun(10, again); n != 0 && !suite.Race {
			t.Errorf("%q: %v allocations", test.want, n)
		}
	}
}
