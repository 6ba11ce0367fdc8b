package keytext

import (
	"net/netip"
	"strings"

	"github.com/reqlock/reqlock/internal/kind"
)

// Host checks the host of a request, and returns its one form as a key: a name in lower
// case, without a port and without the dot at its end, or an IP address as IP returns it.
//
// An empty host is kind.ErrNoKey. These are kind.ErrInvalidKey: a host that is neither a
// name of letters, digits, hyphens, underscores and dots nor an IP address, and a port that
// is not a number.
func Host(host string) (string, error) {
	name := host
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		if strings.Trim(host[colon+1:], "0123456789") != "" {
			return "", errHost
		}
		name = host[:colon]
	}
	if inner, ok := strings.CutPrefix(name, "["); ok {
		address, closed := strings.CutSuffix(inner, "]")
		if !closed || !strings.Contains(address, ":") {
			return "", errHost
		}
		return IP(address)
	}
	if strings.ContainsFunc(name, notInName) {
		return "", errHost
	}
	return Text(strings.ToLower(strings.TrimSuffix(name, ".")))
}

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

// notInName reports whether a host name cannot contain a character.
func notInName(c rune) bool {
	letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	digit := '0' <= c && c <= '9'
	return !letter && !digit && c != '-' && c != '.' && c != '_'
}

var errHost = Invalid("not a host")
