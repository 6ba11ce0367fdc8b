package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// StartTLS is [Start] of a server that also accepts TLS, from clients without certificates.
// It returns the address for TLS, and the configuration of a client. If redis-server was built
// without TLS, the test is skipped, or fails if REQLOCK_REQUIRE_REDIS is set.
func StartTLS(tb testing.TB, args ...string) (server *Server, addr string, config *tls.Config) {
	tb.Helper()
	Program(tb)
	authority := newAuthority(tb)
	cert, key := authority.issue(tb, tb.TempDir())
	for range startAttempts {
		port, err := FreePort(tb)
		if err != nil {
			tb.Fatalf("find a port for TLS: %v", err)
		}
		addr = loopback(port)
		_, number, _ := net.SplitHostPort(addr)
		s := newServer(tb, Program(tb), slices.Concat(args, []string{
			"--tls-port", number, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no",
		}))
		err = s.start()
		if err == nil {
			return s, addr, authority.trust()
		}
		switch log := s.log(); {
		case hasNoTLS(log):
			suite.SkipOrFail(tb, "redis-server has no TLS: %v\n%s", err, log)
		case !strings.Contains(log, "bind"): // else another program has taken the port
			tb.Fatalf("start redis-server with TLS: %v\n%s", err, log)
		}
	}
	tb.Fatalf("start redis-server with TLS: no port is free")
	return nil, "", nil
}

// hasNoTLS reports whether a server has ended because it has no options of TLS. The server prints
// the line of the first bad option, and then what is wrong.
func hasNoTLS(log string) bool {
	_, after, found := strings.Cut(log, ">>> 'tls-port ")
	return found && strings.Contains(after, "Bad directive")
}

// UntrustedTLS returns a TLS configuration that trusts no server of a test.
func UntrustedTLS(tb testing.TB) *tls.Config {
	tb.Helper()
	return newAuthority(tb).trust()
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(tb testing.TB) authority {
	tb.Helper()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "redistest"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatalf("make a key: %v", err)
	}
	a := authority{template, key}
	a.cert, _ = a.sign(tb, template, key)
	return a
}

// sign signs a certificate, and returns it with its encoding.
func (a authority) sign(tb testing.TB, template *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, []byte) {
	tb.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		tb.Fatalf("sign a certificate: %v", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatalf("read a certificate: %v", err)
	}
	return cert, der
}

func (a authority) issue(tb testing.TB, dir string) (certFile, keyFile string) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatalf("make a key: %v", err)
	}
	_, der := a.sign(tb, &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "redis"},
		NotBefore:    a.cert.NotBefore,
		NotAfter:     a.cert.NotAfter,
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, key)
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		tb.Fatalf("encode a key: %v", err)
	}
	certFile, keyFile = filepath.Join(dir, "redis.crt"), filepath.Join(dir, "redis.key")
	for path, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile:  {Type: "EC PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			tb.Fatalf("write a certificate: %v", err)
		}
	}
	return certFile, keyFile
}

func (a authority) trust() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}
