package grpclock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/url"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// An authority signs the certificates of a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, pool: x509.NewCertPool()}
	a.cert = &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	root := a.sign(a.cert)
	a.cert, a.key = root.Leaf, root.PrivateKey.(*ecdsa.PrivateKey)
	a.pool.AddCert(a.cert)
	return a
}

// sign returns a certificate of the template; the first one signs itself.
func (a *authority) sign(template *x509.Certificate) *tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	signer := a.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// client returns a client's certificate.
func (a *authority) client(subject pkix.Name, uris ...string) *tls.Certificate {
	a.t.Helper()
	template := &x509.Certificate{Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, uri := range uris {
		parsed, err := url.Parse(uri)
		if err != nil {
			a.t.Fatal(err)
		}
		template.URIs = append(template.URIs, parsed)
	}
	return a.sign(template)
}

// With mutual TLS the certificate determines the key. Nothing else that a client sends
// changes the key.
func TestPeerWithTLS(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	billing := pkix.Name{CommonName: "billing", Organization: []string{"Example"}}
	for name, test := range map[string]struct {
		auth   tls.ClientAuthType
		client *tls.Certificate
		key    string
		reason string
	}{
		"SPIFFE ID":      {tls.RequireAndVerifyClientCert, ours.client(billing, "spiffe://example.org/billing"), "spiffe://example.org/billing", ""},
		"another URI":    {tls.RequireAndVerifyClientCert, ours.client(billing, "https://example.org/billing"), "https://example.org/billing", ""},
		"several URIs":   {tls.RequireAndVerifyClientCert, ours.client(billing, "spiffe://example.org/a", "spiffe://example.org/b"), "", "INVALID_KEY"},
		"subject":        {tls.RequireAndVerifyClientCert, ours.client(billing), "CN=billing,O=Example", ""},
		"no subject":     {tls.RequireAndVerifyClientCert, ours.client(pkix.Name{}), "", "NO_KEY"},
		"not verified":   {tls.RequireAnyClientCert, theirs.client(billing, "spiffe://example.org/billing"), "", "INVALID_KEY"},
		"no certificate": {tls.VerifyClientCertIfGiven, nil, "127.0.0.1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, _ := adaptertest.Locker(t)
			var key string
			addr := listen(t, &bank{transfer: func(ctx context.Context, _ *pb.TransferRequest) error {
				lease, _ := core.LeaseFromContext(ctx)
				key = lease.Key()
				return nil
			}}, unary(locks, grpclock.Peer()), grpc.Creds(credentials.NewTLS(&tls.Config{
				Certificates: []tls.Certificate{*ours.sign(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})},
				ClientAuth:   test.auth,
				ClientCAs:    ours.pool,
				MinVersion:   tls.VersionTLS13,
			})))
			config := &tls.Config{RootCAs: ours.pool, MinVersion: tls.VersionTLS13}
			if test.client != nil {
				config.Certificates = []tls.Certificate{*test.client}
			}
			client := pb.NewBankClient(dial(t, addr, grpc.WithTransportCredentials(credentials.NewTLS(config))))
			_, err := client.Transfer(within(t), transferOf("a"))
			if key != test.key || reasonOf(err) != test.reason || (test.reason == "") != (status.Code(err) == codes.OK) {
				t.Errorf("key %q, %v", key, err)
			}
		})
	}
}

func TestPeerWithoutTLS(t *testing.T) {
	t.Parallel()
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 4242} }
	for name, test := range map[string]struct {
		peer    *peer.Peer
		want    string
		wantErr error
	}{
		"IPv4":           {&peer.Peer{Addr: tcp("192.0.2.1")}, "192.0.2.1", nil},
		"IPv4 in IPv6":   {&peer.Peer{Addr: tcp("::ffff:192.0.2.1")}, "192.0.2.1", nil},
		"IPv6":           {&peer.Peer{Addr: tcp("2001:db8::1")}, "2001:db8::1", nil},
		"zone":           {&peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}}, "fe80::1%eth0", nil},
		"without a port": {&peer.Peer{Addr: &net.IPAddr{IP: net.ParseIP("2001:db8::1")}}, "2001:db8::1", nil},
		"Unix socket":    {&peer.Peer{Addr: &net.UnixAddr{Name: "@", Net: "unix"}}, "", core.ErrInvalidKey},
		"no name":        {&peer.Peer{Addr: &net.UnixAddr{}}, "", core.ErrNoKey},
		"no address":     {&peer.Peer{}, "", core.ErrNoKey},
		"no peer":        {nil, "", core.ErrNoKey},
		"empty chain": {&peer.Peer{Addr: tcp("192.0.2.1"), AuthInfo: credentials.TLSInfo{
			State: tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}},
		}}, "192.0.2.1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			if test.peer != nil {
				ctx = peer.NewContext(ctx, test.peer)
			}
			checkKey(t, grpclock.Peer(), grpclock.NewCall(ctx, "", nil), test.want, test.wantErr)
		})
	}
}
