package keytext

import (
	"net/netip"

	"github.com/reqlock/reqlock/internal/kind"
)

// IP checks the text of an IP address without a port, and returns the one form that an
// address has as a key: an IPv4 address that is mapped into IPv6 is the IPv4 address. An
// empty text is kind.ErrNoKey. A text that is no address is kind.ErrInvalidKey.
func IP(host string) (string, error) {
	if host == "" {
		return "", kind.ErrNoKey
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return "", Invalid("not an IP address")
	}
	return Text(ip.Unmap().String())
}
