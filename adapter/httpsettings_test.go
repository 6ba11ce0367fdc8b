package adapter

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

func TestMethodsMatchInAnyCase(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	always := newEndpoint(t, locks, core.WithMethods("post", "Purge"))
	optional := newEndpoint(t, locks, core.WithOptionalKey("Idempotency-Key", "X-Key"))
	for _, test := range []struct {
		endpoint *IdempotentHTTP[*http.Request]
		method   string
		header   string
		want     bool
	}{
		{always, "POST", "", true},
		{always, "post", "", true},
		{always, "PURGE", "", true},
		{always, "PATCH", "Idempotency-Key", false},
		{always, "GET", "Idempotency-Key", false},
		{optional, "POST", "", false},
		{optional, "PATCH", "idempotency-key", true},
		{optional, "patch", "x-key", true},
		{optional, "PUT", "X-Key", false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Method = test.method
		if test.header != "" {
			r.Header.Set(test.header, "") // present, and empty
		}
		if got := test.endpoint.covers(r.Method, r); got != test.want {
			t.Errorf("%s with %q: %v", test.method, test.header, got)
		}
	}
}
