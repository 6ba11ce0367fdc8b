package redistest

import (
	"math/rand/v2"
	"net"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestThePortOfAKilledServerStaysReserved(t *testing.T) {
	t.Parallel()
	Program(t)                                  // skips the test where there is no server
	unshared := firstPort - 1 - rand.IntN(5000) // below the range, so no other test takes it
	t.Run("inner", func(t *testing.T) {
		if err := reserve(t, unshared); err != nil {
			t.Fatal(err)
		}
		node := newServer(t, Program(t), nil)
		node.role = clusterNode
		if err := node.start(); err != nil {
			t.Fatal(err)
		}
		node.Kill()
		for _, port := range []int{node.port, node.busPort} {
			if answers(t, loopback(port)) {
				t.Errorf("a server listens on port %d", port)
			}
			if err := reserve(t, port); err == nil {
				t.Errorf("port %d is returned to another test", port)
			}
		}
		node.Restart()
	})
	// A process that another test has just forked has the socket too, until it runs its program.
	suite.Eventually(t, "the reservation ends with the test", func() bool { return reserve(t, unshared) == nil })
}

func TestAUsedPortIsNotReturned(t *testing.T) {
	t.Parallel()
	port, err := FreePort(t)
	if err != nil {
		t.Fatal(err)
	}
	if port < firstPort || port >= lastPort {
		t.Errorf("port %d is in the range of outgoing connections", port)
	}
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port = taken.Addr().(*net.TCPAddr).Port
	if err := reserve(t, port); err == nil {
		t.Errorf("port %d is returned although a server listens", port)
	}
}
