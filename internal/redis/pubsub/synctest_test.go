package pubsub

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
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

func TestListenThenCutThenClose(t *testing.T) {
	inBubble(t, func(t *testing.T, s *testStore, wire *network, direct *redis.Client) {
		hints := hintsOf(s)
		ready, stop := s.Listen("k")
		suite.AwaitClosed(t, "ready", ready)
		nextHint(t, hints)
		time.Sleep(time.Minute)
		publish(t, direct, storetest.Me1+" p:k")
		if got := nextHint(t, hints); got != (hint{"k", storetest.Me1}) {
			t.Errorf("hint %v", got)
		}
		if dials := wire.cut(false); dials != 1 {
			t.Errorf("%d connections in a minute, want 1", dials)
		}
		if got := nextHint(t, hints); got != (hint{"k", ""}) {
			t.Errorf("hint %v", got)
		}
		stop()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		late, _ := s.Listen("k")
		synctest.Wait()
		if n := subscribers(t, direct); n != 0 || suite.IsClosed(late) {
			t.Errorf("after Close: %d subscribers, ready %v", n, suite.IsClosed(late))
		}
	})
}

func TestSubscriptionEndsAtTheEndOfItsLingerTime(t *testing.T) {
	inBubble(t, func(t *testing.T, s *testStore, _ *network, direct *redis.Client) {
		for range 2 { // the linger time begins at the last stop
			ready, stop := s.Listen("k")
			suite.AwaitClosed(t, "ready", ready)
			stop()
			time.Sleep(defaultTiming().linger - time.Second)
		}
		for _, want := range []int64{1, 0} {
			time.Sleep(time.Second/2 + time.Millisecond)
			synctest.Wait()
			if n := subscribers(t, direct); n != want {
				t.Errorf("%d subscribers, want %d", n, want)
			}
		}
	})
}

// The pauses grow with each failed connection, and are short again after a connection that
// the server confirmed.
func TestBackoffBetweenConnections(t *testing.T) {
	inBubble(t, func(t *testing.T, s *testStore, wire *network, direct *redis.Client) {
		hints := hintsOf(s)
		ready, stop := s.Listen("k")
		defer stop()
		suite.AwaitClosed(t, "ready", ready)
		nextHint(t, hints)
		time.Sleep(time.Minute)
		wire.cut(true)
		time.Sleep(time.Minute)
		// go-redis dials twice in an attempt, because this dialer ignores its context.
		if dials := wire.cut(false); dials < 2*60 || dials > 2*130 {
			t.Errorf("%d dials in a minute, want 120 to 260", dials)
		}
		if got := nextHint(t, hints); got != (hint{"k", ""}) {
			t.Errorf("hint %v", got)
		}
		time.Sleep(time.Minute)
		wire.cut(false)
		begun := time.Now()
		nextHint(t, hints)
		if took := time.Since(begun); took > 25*time.Millisecond {
			t.Errorf("connected %v after a cut, want at most 25ms", took)
		}
		if n := subscribers(t, direct); n != 1 {
			t.Errorf("%d subscribers, want 1", n)
		}
	})
}
