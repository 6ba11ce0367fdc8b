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

// The ports for servers are below the range from which systems take the ports of
// outgoing connections (32768 and up on Linux, 49152 and up elsewhere). So no
// connection can sit on the port of a killed server when it is started again.
const (
	firstPort = 20000
	lastPort  = 32000
)

// FreePort returns a loopback port nobody listens on. Until the cleanup of tb no
// other test, of any process, is given it, whether anybody listens there or not: a
// server that was killed can come back, and nobody meets another one in its place.
// A process that is no test may take it: the caller has to cope.
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

// reserve takes a port on which nobody listens until the cleanup of tb. The mark of
// it is a socket for UDP, which nobody else wants, and which ends with the process.
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
