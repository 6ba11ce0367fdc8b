package pipeline

import (
	"errors"
	"testing"
)

// A node sends an IPv6 address without brackets. The client uses it with brackets.
func TestRedirectionHasAddressAsClientUsesIt(t *testing.T) {
	t.Parallel()
	for redirection, want := range map[string]struct {
		address    string
		asking, ok bool
	}{
		"MOVED 3999 127.0.0.1:6381":              {"127.0.0.1:6381", false, true},
		"ASK 3999 127.0.0.1:6381":                {"127.0.0.1:6381", true, true},
		"MOVED 3999 ::1:6381":                    {"[::1]:6381", false, true},
		"ASK 3999 [2001:db8::1]:6381":            {"[2001:db8::1]:6381", true, true},
		"MOVED 3999 redis.example:6381":          {"redis.example:6381", false, true},
		"MOVED":                                  {},
		"READONLY You can't write at a replica.": {},
	} {
		address, asking, ok := parseRedirection(errors.New(redirection))
		if address != want.address || asking != want.asking || ok != want.ok {
			t.Errorf("%q: %q, %v, %v", redirection, address, asking, ok)
		}
	}
}
