package pubsub

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A connTest has a connection that is never dialed. The test passes the master's replies to
// it. No goroutine resolves masters meanwhile.
type connTest struct {
	*shardedSubscriptions
	conn  *shardConn
	hints <-chan hint
}

func newConnTest(t *testing.T) *connTest {
	t.Helper()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: "127.0.0.1:1"}}}}, nil
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	s := newStore(t, rdb)
	test := &connTest{shardedSubscriptions: s.sharded, hints: hintsOf(s)}
	test.isResolving = true // prevents the start of the goroutine
	master, err := rdb.MasterForKey(t.Context(), storetest.LockName)
	if err != nil {
		t.Fatal(err)
	}
	test.conn = test.connection(master)
	return test
}

// connection returns a connection that is never dialed.
func (s *connTest) connection(master *redis.Client) *shardConn {
	c := &shardConn{
		parent: s.shardedSubscriptions, master: master, wakeup: make(chan struct{}, 1), cancel: func() {},
		channels: make(map[string]*shardChannel), checkedAt: time.Now(),
	}
	s.conns[master] = c
	return c
}

// listenOn listens for the key k and sends the request on a connection.
func (s *connTest) listenOn(t *testing.T, conn *shardConn) (c *shardChannel, ready <-chan struct{}) {
	t.Helper()
	ready, stop := s.listen("k")
	t.Cleanup(stop)
	s.mu.Lock()
	c = s.channels[storetest.LockName]
	conn.subscribe(c)
	s.mu.Unlock()
	s.sendAll(conn)
	return c, ready
}

// sendAll marks all queued requests of a connection as sent.
func (s *connTest) sendAll(conn *shardConn) {
	for more := true; more; {
		_, more = conn.next()
	}
}

// reply passes a reply of the master to the connection.
func (c *shardConn) reply(kind string, channel *shardChannel) {
	c.handle(&redis.Subscription{Kind: kind, Channel: channel.name}, nil)
}

func TestSecondConfirmationDoesNotCloseReadyAgain(t *testing.T) {
	t.Parallel()
	s := newConnTest(t)
	c, ready := s.listenOn(t, s.conn)
	_, _ = s.listenOn(t, s.conn) // the request is repeated because the first reply is late
	for range 2 {
		s.conn.reply("ssubscribe", c)
		if !c.isConfirmed || !suite.IsClosed(ready) {
			t.Fatal("not ready")
		}
		if got := nextHint(t, s.hints); got != (hint{"k", ""}) {
			t.Errorf("hint %v", got)
		}
	}
	if len(s.conn.unanswered) > 0 {
		t.Errorf("%d unanswered requests are left", len(s.conn.unanswered))
	}
	s.conn.reply("ssubscribe", c) // without a request
	if len(s.hints) > 0 {
		t.Error("a hint without a request")
	}
}

// A master behind a network partition replies even after it was replaced.
func TestChannelLeavesAFormerMaster(t *testing.T) {
	t.Parallel()
	s := newConnTest(t)
	former := redis.NewClient(&redis.Options{Addr: "127.0.0.1:2"})
	t.Cleanup(func() { _ = former.Close() })
	for _, test := range []struct {
		name  string
		conn  *shardConn
		after time.Duration // since the last check
		stays bool
	}{
		{"another master", s.connection(former), s.timing.pingAfter, false},
		{"another master, checked just now", s.connection(former), 0, true},
		{"its master", s.conn, s.timing.pingAfter, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, _ := s.listenOn(t, test.conn)
			test.conn.reply("ssubscribe", c)
			test.conn.checkedAt = time.Now().Add(-test.after)
			test.conn.handle(&redis.Pong{}, nil)
			if stays := c.conn == test.conn && c.isConfirmed; stays != test.stays {
				t.Errorf("the channel stays: %v", stays)
			}
			if !test.stays && (len(test.conn.queued) != 1 || test.conn.queued[0].kind != unsubscribe || c.heapIndex == 0) {
				t.Errorf("queued %v, heap index %d", test.conn.queued, c.heapIndex)
			}
		})
	}
}

func TestServersUnsubscribeInvalidatesAConfirmedChannel(t *testing.T) {
	t.Parallel()
	s := newConnTest(t)
	c, ready := s.listenOn(t, s.conn)
	s.conn.reply("sunsubscribe", c) // belongs to an earlier subscription
	if c.conn != s.conn || s.isTableStale {
		t.Error("the channel is invalidated before its confirmation")
	}
	s.conn.reply("ssubscribe", c)
	if !suite.IsClosed(ready) {
		t.Error("not ready")
	}
	s.conn.reply("sunsubscribe", c)
	again, stop := s.listen("k")
	defer stop()
	if c.conn != nil || c.isConfirmed || !s.isTableStale || suite.IsClosed(again) {
		t.Errorf("%+v, ready %v", c, suite.IsClosed(again))
	}
}

func TestErrorOnAFormerConnectionInvalidatesNothing(t *testing.T) {
	t.Parallel()
	s := newConnTest(t)
	moved := errors.New("MOVED 1 127.0.0.1:2")
	c, _ := s.listenOn(t, s.conn)
	other := s.connection(s.conn.master)
	s.mu.Lock()
	s.conn.unsubscribe(c)
	s.mu.Unlock()
	_, ready := s.listenOn(t, other)
	other.reply("ssubscribe", c)
	s.conn.handle(nil, moved)
	if c.conn != other || !c.isConfirmed || !suite.IsClosed(ready) || s.isTableStale {
		t.Errorf("%+v", c)
	}
	_, _ = s.listenOn(t, other)
	other.handle(nil, moved)
	if c.conn != nil || c.isConfirmed || !s.isTableStale {
		t.Errorf("after an error on its own connection: %+v", c)
	}
}

func TestConfirmationOnAFormerConnectionIsIgnored(t *testing.T) {
	t.Parallel()
	s := newConnTest(t)
	c, ready := s.listenOn(t, s.conn)
	s.mu.Lock()
	s.conn.unsubscribe(c)
	s.mu.Unlock()
	_, _ = s.listenOn(t, s.connection(s.conn.master))
	s.conn.reply("ssubscribe", c)
	if c.isConfirmed || suite.IsClosed(ready) || len(s.hints) > 0 {
		t.Errorf("%+v, ready %v, %d hints", c, suite.IsClosed(ready), len(s.hints))
	}
}

func TestIdleConnectionEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(s *connTest)
		ends   bool
		stays  bool // the parent has a connection to the master
	}{
		"without channels":                    {func(*connTest) {}, true, false},
		"with a channel":                      {func(s *connTest) { s.conn.channels["c"] = &shardChannel{} }, false, true},
		"with a queued request":               {func(s *connTest) { s.conn.queued = []request{{kind: unsubscribe}} }, false, true},
		"with a newer one to the same master": {func(s *connTest) { s.connection(s.conn.master) }, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newConnTest(t)
			test.change(s)
			if ends := s.conn.removeIdle(); ends != test.ends {
				t.Errorf("the connection ends: %v", ends)
			}
			if _, stays := s.conns[s.conn.master]; stays != test.stays {
				t.Errorf("the parent has a connection: %v", stays)
			}
		})
	}
}

func TestChannelWithoutListenersIsRemoved(t *testing.T) {
	t.Parallel()
	s := newConnTest(t)
	c, _ := s.listenOn(t, s.conn)
	s.removeIdle(c)
	if s.channels[storetest.LockName] != c || c.conn != s.conn {
		t.Error("a channel with a listener is removed")
	}
	former := &shardChannel{lock: c.lock, name: c.name}
	s.removeIdle(former)
	if s.channels[storetest.LockName] != c || c.heapIndex == 0 {
		t.Error("the removal of a former channel removes its successor")
	}
	s.mu.Lock()
	c.listeners--
	s.mu.Unlock()
	s.removeIdle(c)
	if len(s.channels) > 0 || c.conn != nil || c.heapIndex != 0 || len(s.conn.queued) != 1 {
		t.Errorf("%+v, queued %v", c, s.conn.queued)
	}
	c.listeners++ // the stop function of listenOn subtracts it
}
