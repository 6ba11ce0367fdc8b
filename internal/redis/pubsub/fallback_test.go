package pubsub

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Nodes older than Redis 7 have no sharded channels.
func TestOldClusterHasOneSubscription(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, "--rename-command", "SSUBSCRIBE", "", "--rename-command", "SPUBLISH", "")
	t.Run("all keys use it", func(t *testing.T) {
		c := newClusterTest(t, cluster)
		keys := c.keysOf(t, cluster.Masters()...)
		readies := make([]<-chan struct{}, len(keys))
		var group sync.WaitGroup
		for i, key := range keys {
			group.Go(func() {
				ready, stop := c.me.Listen(key)
				t.Cleanup(stop)
				readies[i] = ready
			})
		}
		group.Wait()
		c.awaitGapHints(t, keys...)
		for _, ready := range readies {
			suite.AwaitClosed(t, "ready", ready)
		}
		if c.me.Mode() != uncounted {
			t.Errorf("mode %v", c.me.Mode())
		}
		subscribers := int64(0)
		for _, node := range c.nodes {
			subscribers += node.PubSubNumSub(t.Context(), storetest.ProcessChannel).Val()[storetest.ProcessChannel]
		}
		if subscribers != 1 {
			t.Errorf("%d subscribers, want 1", subscribers)
		}
		later, stop := c.me.Listen("later")
		defer stop()
		if !suite.IsClosed(later) {
			t.Error("a later key is not ready, but the subscription is confirmed")
		}
		for _, key := range keys {
			handOffUncounted(t, c, key)
		}
	})
	t.Run("it ends after the last listener", func(t *testing.T) {
		c := newClusterTest(t, cluster)
		c.me.shared.timing.linger = time.Millisecond
		_, stop := c.me.Listen("k")
		ready, stopOther := c.me.Listen("other")
		suite.AwaitClosed(t, "ready", ready)
		for _, stop := range []func(){stop, stopOther} {
			stop()
			stop()
		}
		suite.Eventually(t, "no channel is left", func() bool {
			for _, node := range c.nodes {
				if node.PubSubNumSub(t.Context(), storetest.ProcessChannel).Val()[storetest.ProcessChannel] > 0 {
					return false
				}
			}
			return true
		})
	})
	t.Run("Close before, during and after the fallback", func(t *testing.T) {
		for i := range 10 {
			c := newClusterTest(t, cluster)
			_, stop := c.me.Listen("k")
			time.Sleep(time.Duration(i) * 500 * time.Microsecond)
			if err := c.me.Close(t.Context()); err != nil {
				t.Error(err)
			}
			stop()
			late, stopLate := c.me.Listen("k")
			if suite.IsClosed(late) {
				t.Error("ready after Close")
			}
			stopLate()
		}
	})
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
