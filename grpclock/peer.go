package grpclock

import (
	"crypto/x509"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/keypart"
)

// Peer reads the key from who is at the other end of the connection.
//
// With mutual TLS that is the identity in the client's certificate: its URI,
// such as a SPIFFE ID, or else its subject ("CN=billing,O=Example"). A
// certificate with several URIs is core.ErrInvalidKey, and one with neither
// core.ErrNoKey. Only a certificate that crypto/tls has verified counts
// (tls.RequireAndVerifyClientCert); another one is core.ErrInvalidKey. A program
// that verifies certificates by itself needs a KeyFunc of its own.
//
// Without a certificate it is the IP address of the peer, without its port. Behind a
// proxy that is the proxy, so that all clients share one lock. A peer without
// an IP address, as on a Unix socket, is core.ErrNoKey or core.ErrInvalidKey.
func Peer() KeyFunc {
	return func(c *Call) (string, error) {
		p, ok := peer.FromContext(c.Context())
		if !ok {
			return "", core.ErrNoKey
		}
		tls, _ := p.AuthInfo.(credentials.TLSInfo)
		chains := tls.State.VerifiedChains
		switch {
		case len(chains) > 0 && len(chains[0]) > 0:
			return identity(chains[0][0])
		case len(tls.State.PeerCertificates) > 0:
			return "", keypart.Invalid("a certificate that crypto/tls has not verified")
		}
		return address(p.Addr)
	}
}

// identity returns whom a certificate names.
func identity(leaf *x509.Certificate) (string, error) {
	switch len(leaf.URIs) {
	case 0:
		return keypart.Text(leaf.Subject.String())
	case 1:
		return keypart.Text(leaf.URIs[0].String())
	default:
		return "", keypart.Invalid("a certificate with %d URIs", len(leaf.URIs))
	}
}

// address returns the host of an address.
func address(addr net.Addr) (string, error) {
	if addr == nil {
		return "", core.ErrNoKey
	}
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		host = addr.String()
	}
	return keypart.IP(host)
}
