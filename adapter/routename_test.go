package adapter

import (
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

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
