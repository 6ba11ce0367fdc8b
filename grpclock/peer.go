package grpclock

import (
	"crypto/x509"
	"fmt"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// Peer reads the key from the identity or the address of the client's connection.
//
// With mutual TLS the key is the identity in the client's certificate: its URI, such
// as a SPIFFE ID, or else its subject ("CN=billing,O=Example"). A certificate with
// several URIs is core.ErrInvalidKey, and a certificate without URI and subject is
// core.ErrNoKey. crypto/tls must have verified the certificate
// (tls.RequireAndVerifyClientCert); any other certificate is core.ErrInvalidKey. A
// program that verifies certificates by itself needs a Key of its own.
//
// Without a certificate the key is the IP address of the peer, without its port.
// Behind a proxy the peer is the proxy, so that all clients share one lock. A peer
// without an IP address, as on a Unix socket, is core.ErrNoKey or core.ErrInvalidKey.
func Peer() Key { return core.KeyOf(peerOf).Describe("Peer()", "") }

func peerOf(c *Call) (string, error) {
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
		return "", fmt.Errorf("%w: a certificate that crypto/tls has not verified", core.ErrInvalidKey)
	}
	return address(p.Addr)
}

// identity returns the URI or the subject of a certificate.
func identity(leaf *x509.Certificate) (string, error) {
	switch len(leaf.URIs) {
	case 0:
		return adapter.Text(leaf.Subject.String())
	case 1:
		return adapter.Text(leaf.URIs[0].String())
	default:
		return "", fmt.Errorf("%w: a certificate with %d URIs", core.ErrInvalidKey, len(leaf.URIs))
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
	return adapter.IP(host)
}
