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
	config, cert, key := newCertificate(tb)
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
			return s, addr, config
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
	config, _, _ := newCertificate(tb)
	return config
}

// newCertificate writes a certificate of this machine, which signs itself, and its key into files.
// The configuration trusts it.
func newCertificate(tb testing.TB) (config *tls.Config, certFile, keyFile string) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatalf("make a key: %v", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redistest"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		tb.Fatalf("sign a certificate: %v", err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		tb.Fatalf("encode a key: %v", err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	certFile, keyFile = filepath.Join(tb.TempDir(), "redis.crt"), filepath.Join(tb.TempDir(), "redis.key")
	for path, text := range map[string][]byte{certFile: cert, keyFile: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			tb.Fatalf("write a certificate: %v", err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, certFile, keyFile
}
