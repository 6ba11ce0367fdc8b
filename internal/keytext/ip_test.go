package keytext_test

import (
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/keytext"
)

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
