package keytext_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/keytext"
)

// All spellings of a host, with any port, are one key.
func TestHost(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"tenant.example":           "tenant.example",
		"tenant.example:443":       "tenant.example",
		"tenant.example:":          "tenant.example",
		"TENANT.example:8080":      "tenant.example",
		"tenant.example.":          "tenant.example",
		"tenant.example.:443":      "tenant.example",
		"xn--bcher-kva.example":    "xn--bcher-kva.example",
		"my_tenant-1":              "my_tenant-1",
		"192.0.2.1:80":             "192.0.2.1",
		"[2001:DB8::1]":            "2001:db8::1",
		"[2001:db8:0:0:0::1]:8443": "2001:db8::1",
		"[::ffff:192.0.2.1]:80":    "192.0.2.1",
		strings.Repeat("a", 512):   strings.Repeat("a", 512),
	} {
		if key, err := keytext.Host(host); key != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", host, key, err, want)
		}
	}
	for _, host := range []string{"", ".", ":", ":443", ".:443"} {
		if key, err := keytext.Host(host); key != "" || !errors.Is(err, core.ErrNoKey) {
			t.Errorf("%q: %q, %v", host, key, err)
		}
	}
	for _, host := range []string{
		"a b", "a/b", "a@b", "a,b", "a%2eb", "b\u00fccher.example", "a\x00", "\xff", "*.example",
		"a:b", "a:80:80", "a:-1", "a:+1", "2001:db8::1", "::1", "[::1", "::1]", "[]", "[]:80", "[tenant.example]",
		"[192.0.2.1]", "[::1]x", "[::1]:x", "x[::1]", "[[::1]]", "[::g]", strings.Repeat("a", 513),
	} {
		if key, err := keytext.Host(host); key != "" || !errors.Is(err, core.ErrInvalidKey) {
			t.Errorf("%q: %q, %v", host, key, err)
		}
	}
}

func TestIP(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in      string
		want    string
		wantErr error
	}{
		"IPv4":         {"192.0.2.1", "192.0.2.1", nil},
		"IPv6":         {"2001:db8::1", "2001:db8::1", nil},
		"long form":    {"2001:DB8:0:0:0:0:0:1", "2001:db8::1", nil},
		"mapped":       {"::ffff:192.0.2.1", "192.0.2.1", nil},
		"zone":         {"fe80::1%eth0", "fe80::1%eth0", nil},
		"none":         {"", "", core.ErrNoKey},
		"with a port":  {"192.0.2.1:80", "", core.ErrInvalidKey},
		"a name":       {"localhost", "", core.ErrInvalidKey},
		"a nil net.IP": {"<nil>", "", core.ErrInvalidKey},
		"odd zone":     {"fe80::1%\n", "", core.ErrInvalidKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := keytext.IP(test.in)
			check(t, key, err, test.want, test.wantErr)
		})
	}
}
