package pubsub

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
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

// handOffUncounted is handOff without a subscriber of the key's sharded channel.
func handOffUncounted(t *testing.T, c *clusterTest, key string) {
	t.Helper()
	held, waits := c.requests(key)
	if got, err := c.bob.Enqueue(t.Context(), held); err != nil || !got.Granted {
		t.Fatalf("Bob: %+v, %v", got, err)
	}
	if got, err := c.me.Enqueue(t.Context(), waits); err != nil || got.Granted {
		t.Fatalf("Me: %+v, %v", got, err)
	}
	if got, err := c.bob.Release(t.Context(), held); err != nil || got.Status != store.Handed {
		t.Errorf("release of %s: %+v, %v, want handed", key, got, err)
	}
	c.awaitHints(t, map[hint]bool{{key, waits.Token}: true})
	if got, err := c.me.Release(t.Context(), waits); err != nil || got.Status != store.Freed {
		t.Errorf("second release of %s: %+v, %v, want freed", key, got, err)
	}
}

// If an ACL forbids both kinds of subscription, waiters depend on their timers, and the store
// retries with backoff. A right to either kind is enough: a script at the master of a key
// counts the subscriber of the sharded channel, and of the process's channel.
func TestForbiddenSubscriptionIsRetriedWithBackoff(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	for _, right := range []string{"+ssubscribe", "+subscribe"} {
		t.Run(right, func(t *testing.T) { testForbiddenSubscription(t, cluster, right) })
	}
}

func testForbiddenSubscription(t *testing.T, cluster *redistest.Cluster, right string) {
	t.Helper()
	user := "user" + right
	c := newClusterTest(t, cluster, func(o *redis.ClusterOptions) { o.Username, o.Password = user, "any" })
	allow := func(rules ...any) {
		for _, node := range c.nodes {
			if err := node.Do(t.Context(), append([]any{"acl", "setuser", user}, rules...)...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	allow("on", "nopass", "~*", "&*", "+@all", "-ssubscribe", "-subscribe")
	c.me.sharded.timing.minBackoff = 20 * time.Millisecond
	keys := c.keysOf(t, cluster.Masters()...)
	master := c.nodes[cluster.MasterOf("p:"+keys[0])]
	refused := func() (n int) {
		stats := master.InfoMap(t.Context(), "commandstats").Val()["Commandstats"]
		for _, name := range []string{"cmdstat_ssubscribe", "cmdstat_subscribe"} {
			var rejected int
			_, _ = fmt.Sscanf(stats[name], "calls=%d,usec=%d,usec_per_call=%f,rejected_calls=%d", new(int), new(int), new(float64), &rejected)
			n += rejected
		}
		return n
	}
	begun, before := time.Now(), refused()
	ready, stop := c.me.Listen(keys[0])
	defer stop()
	suite.Eventually(t, "five attempts", func() bool { return refused() >= before+5 })
	// The pauses between the attempts are at least 10, 20, 40, 80 and 160 ms, and then longer.
	if n, since := refused()-before, time.Since(begun); n > 5+int(since/(100*time.Millisecond)) {
		t.Errorf("%d attempts in %v", n, since)
	}
	if suite.IsClosed(ready) || c.me.Mode() != oneMaster {
		t.Errorf("ready %v in mode %v", suite.IsClosed(ready), c.me.Mode())
	}
	c.requireNoHint(t)
	allow(right)
	suite.AwaitClosed(t, "ready", ready)
	c.listen(t, keys[1:]...)
	if c.me.Mode() != manyMasters {
		t.Errorf("mode %v", c.me.Mode())
	}
	for _, key := range keys {
		handOffUncounted(t, c, key)
	}
}

// A cluster client behind Sentinel has all slots at one master.
func TestShardedChannelsBehindSentinel(t *testing.T) {
	t.Parallel()
	if redistest.MinimalRights() {
		t.Skip("needs the rights of a cluster, which a server without cluster mode does not grant")
	}
	for name, change := range map[string]func(*redistest.Sentinels) *redistest.Server{
		"switch": (*redistest.Sentinels).Switch, "crash": (*redistest.Sentinels).Failover,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "switch" {
				suite.Full(t, "repeats the test with another failover")
			}
			sentinels := redistest.StartSentinel(t)
			c := newClusterTestOf(t, sentinels.Servers(), func(string) *redistest.Server { return sentinels.Master() },
				func() *redis.ClusterClient { return newFailoverCluster(t, sentinels) })
			c.listen(t, "k", "other")
			c.handOff(t, "k")
			change(sentinels)
			c.awaitGapHints(t, "k", "other")
			again, stop := c.me.Listen("k")
			defer stop()
			suite.AwaitClosed(t, "ready", again)
			c.handOff(t, "k")
			c.handOff(t, "other")
		})
	}
}

// newFailoverCluster returns a cluster client behind Sentinel. The end of the test closes it.
func newFailoverCluster(t *testing.T, sentinels *redistest.Sentinels) *redis.ClusterClient {
	t.Helper()
	options := &redis.FailoverOptions{MasterName: redistest.MasterName, ReadTimeout: time.Second, DialerRetries: 1}
	for _, sentinel := range sentinels.Sentinels() {
		options.SentinelAddrs = append(options.SentinelAddrs, sentinel.Addr())
	}
	rdb := redis.NewFailoverClusterClient(options)
	t.Cleanup(func() { closeFailoverCluster(t, rdb, sentinels) })
	return rdb
}

// closeFailoverCluster closes the client and its subscription at a Sentinel. Close of the
// client leaves that subscription open. The client closes it when it asks for the master and
// no Sentinel replies, so closeFailoverCluster kills all Sentinels and asks.
func closeFailoverCluster(t *testing.T, rdb *redis.ClusterClient, sentinels *redistest.Sentinels) {
	t.Helper()
	_ = rdb.Close()
	for _, sentinel := range sentinels.Sentinels() {
		sentinel.Kill()
	}
	if _, err := rdb.Options().ClusterSlots(context.Background()); err == nil {
		t.Error("ClusterSlots returns a master without a Sentinel")
	}
}
