package redistest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The ports for servers are below the range of outgoing connections (32768 and up on Linux,
// 49152 and up elsewhere). So no connection can have the port of a killed server when the
// server restarts.
const (
	firstPort = 20000
	lastPort  = 32000
)

// FreePort returns a free loopback port. Until the cleanup of tb no other test of any process
// gets this port, even if it is free: a killed server can restart, and its clients meet no
// other server meanwhile. Other programs may take the port, and the caller must handle
// that.
func FreePort(tb testing.TB) (int, error) {
	var err error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort) //nolint:gosec // not a secret
		if err = reserve(tb, port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

// reserve reserves a free port until the cleanup of tb. A UDP socket marks the reservation.
// No server uses UDP, and the socket ends with the process.
func reserve(tb testing.TB, port int) error {
	var config net.ListenConfig
	mark, err := config.ListenPacket(context.Background(), "udp", loopback(port))
	if err != nil {
		return err
	}
	listener, err := config.Listen(context.Background(), "tcp", loopback(port))
	if err == nil {
		err = listener.Close()
	}
	if err != nil {
		return errors.Join(err, mark.Close())
	}
	tb.Cleanup(func() { _ = mark.Close() })
	return nil
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
