package nethttplock_test

import (
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
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
