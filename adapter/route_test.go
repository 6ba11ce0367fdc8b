package adapter

import (
	"net/http"
	"net/http/httptest"
	"testing"
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
