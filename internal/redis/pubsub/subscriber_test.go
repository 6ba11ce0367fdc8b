package pubsub

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

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
		c.handOffUncounted(t, key)
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

// The subscription has its name, also without the right to CLIENT SETNAME and with both protocols. The
// connections of the program have their own names, also those that are made later.
func TestOnlyTheSubscriptionIsNamed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := redistest.AdminClient(t, server.Addr())
	if err := admin.Do(t.Context(), "acl", "setuser", "alice", "on", "nopass", "~*", "&*", "+@all", "-client|setname").Err(); err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []int{2, 3} {
		connected := 0
		rdb := server.Client(t, func(o *redis.Options) {
			o.Username, o.Password, o.Protocol = "alice", "any", protocol
			o.OnConnect = func(context.Context, *redis.Conn) error { connected++; return nil }
		})
		s := newStore(t, rdb)
		s.SetName("reqlock-me")
		ready, stop := s.Listen("k")
		suite.AwaitClosed(t, "ready", ready)
		if name, err := rdb.Conn().ClientGetName(t.Context()).Result(); err == nil || name != "" || connected != 2 {
			t.Errorf("protocol %d: a connection of the program has the name %q (%v), OnConnect was called %d times", protocol, name, err, connected)
		}
		list := admin.ClientList(t.Context()).Val()
		if n := strings.Count(list, " name=reqlock-me "); n != 1 {
			t.Errorf("protocol %d: %d connections have the name:\n%s", protocol, n, list)
		}
		stop()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		suite.Eventually(t, "the connection ends", func() bool { return !strings.Contains(admin.ClientList(t.Context()).Val(), "reqlock-me") })
	}
}
