package core_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
)

// The key of an endpoint is in Redis: processes of other versions must make the same.
func TestEndpointKey(t *testing.T) {
	t.Parallel()
	const (
		pattern = "Sh_XZRZNiXWS4xk4_LgF4SSo2TzsFaM2VZzk6ix3hjM"
		call    = "KqfQS8yXDWinkifMu51GktGXWqBgIJdUZvn6mG8bKJk"
		path    = "vHxT38u9ACd7yhBlAk3hq8INxtFICiif_uj9EruW8QQ"
	)
	for _, test := range []struct {
		method, route string
		parts         []string
		want          string
	}{
		{"POST", "POST /payments", []string{"ada", "8e03"}, pattern},
		{"post", "POST /payments", []string{"ada", `"8e03"`}, pattern},
		{"", "POST /payments", []string{"3:ada4:8e03"}, pattern},
		{"", "/bank.Bank/Transfer", []string{"ada", `"8e03";a=1`}, call},
		{"patch", "/payments/:id", []string{"8e03"}, path},
	} {
		if got, err := core.EndpointKey(test.method, test.route, test.parts...); got != test.want || err != nil {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
}

func TestEndpointKeyNamesTheWrongArgument(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		method, route string
		parts         []string
		want          string
		kind          error
	}{
		{"POST", "", []string{"8e03"}, "the route is empty", nil},
		{"PATCH", "POST /payments", []string{"8e03"}, `the pattern "POST /payments" has another method than "PATCH"`, nil},
		{"", "/payments", []string{"8e03"}, `the method is empty, and "/payments" is no full method of an RPC`, nil},
		{"", "bank.Bank/Transfer", []string{"8e03"}, "the method is empty", nil},
		{"", "/bank.Bank/", []string{"8e03"}, "the method is empty", nil},
		{"", "/a/b/c", []string{"8e03"}, "the method is empty", nil},
		{"/payments", "POST", []string{"8e03"}, "is no method", nil},
		{"POST", "/payments", nil, "no part of the key", nil},
		{"POST", "/payments", []string{"ada", ""}, "EndpointKey: part 2 of the key is empty", core.ErrNoKey},
		{"POST", "/payments", []string{`""`}, "EndpointKey: part 1 of the key is empty", core.ErrNoKey},
		{"POST", "/payments", []string{`"secret`}, "EndpointKey: part 1 of the key: a quoted idempotency key without an end", core.ErrInvalidKey},
	} {
		got, err := core.EndpointKey(test.method, test.route, test.parts...)
		if got != "" || err == nil || !strings.HasPrefix(err.Error(), "reqlock: EndpointKey: ") ||
			!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") || test.kind != nil && !errors.Is(err, test.kind) {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
}
