package pubsub

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// inBubble runs the test in a bubble of testing/synctest. The store reaches a miniredis
// server through a network in memory. The client direct does not use that network.
func inBubble(t *testing.T, test func(t *testing.T, s *testStore, n *network, direct *redis.Client)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := miniredis.NewMiniRedis()
		t.Cleanup(server.Close)
		n := &network{server: server}
		direct := pipeClient(t, func(context.Context, string, string) (net.Conn, error) { return server.Dial() })
		test(t, newStore(t, pipeClient(t, n.dial)), n, direct)
	})
}

// pipeClient returns a client without timers of its own.
func pipeClient(t *testing.T, dial func(context.Context, string, string) (net.Conn, error)) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Dialer:                   dial,
		MaxRetries:               -1,
		ReadTimeout:              -2,
		WriteTimeout:             -2,
		ConnMaxIdleTime:          -1,
		PoolSize:                 1000,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// A network has the connections of a client to a server.
type network struct {
	server *miniredis.Miniredis
	mu     sync.Mutex
	conns  []net.Conn
	isDown bool
	dials  int
}

func (n *network) dial(context.Context, string, string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials++
	if n.isDown {
		return nil, errors.New("the network is down")
	}
	conn, err := n.server.Dial()
	n.conns = append(n.conns, conn)
	return conn, err
}

// cut closes all connections. If down is true, dials fail until the next cut. It returns the
// number of dials since the last cut.
func (n *network) cut(down bool) (dials int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, conn := range n.conns {
		_ = conn.Close()
	}
	dials, n.dials = n.dials, 0
	n.conns, n.isDown = nil, down
	return dials
}
