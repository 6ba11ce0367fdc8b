package quorumstore

import (
	"context"
	"net"
	"syscall"
	"testing"
)

// go-redis checks connections that it can look into before it uses them again.
func TestTrackedConnectionShowsItsSocket(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	piped := func(context.Context, string, string) (net.Conn, error) {
		conn, other := net.Pipe()
		return conn, other.Close()
	}
	s, _ := newStore(1)
	for name, test := range map[string]struct {
		dial dialer
		want bool
	}{"tcp": {new(net.Dialer).DialContext, true}, "pipe": {piped, false}} {
		conn, err := s.membership.track(0, test.dial)(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, shows := conn.(syscall.Conn); shows != test.want {
			t.Errorf("%s: shows its socket: %v", name, shows)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}
