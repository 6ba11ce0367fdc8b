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
func TestAnOldClusterIsListenedToOnOneChannel(t *testing.T) {
	cluster := redistest.StartCluster(t, "--rename-command", "SSUBSCRIBE", "", "--rename-command", "SPUBLISH", "")
	t.Run("all keys move", func(t *testing.T) {
		w := newShardWorld(t, cluster)
		keys := w.keysOf(t, cluster.Masters()...)
		readies := make([]<-chan struct{}, len(keys))
		var group sync.WaitGroup
		for i, key := range keys {
			group.Go(func() {
				ready, stop := w.mine.Listen(key)
				t.Cleanup(stop)
				readies[i] = ready
			})
		}
		group.Wait()
		w.awaitGap(t, keys...)
		for _, ready := range readies {
			awaitReady(t, ready)
		}
		if w.mine.mode.Load() != "B" {
			t.Errorf("mode %v", w.mine.mode.Load())
		}
		subscribers := int64(0)
		for _, node := range w.nodes {
			subscribers += node.PubSubNumSub(t.Context(), storetest.ProcessChannel).Val()[storetest.ProcessChannel]
		}
		if subscribers != 1 {
			t.Errorf("%d connections listen", subscribers)
		}
		later, stop := w.mine.Listen("later")
		defer stop()
		if !isReady(later) {
			t.Error("not ready, though the channel is")
		}
		for _, key := range keys {
			handPlainly(t, w, key)
		}
	})
	t.Run("who has stopped is not listened for", func(t *testing.T) {
		w := newShardWorld(t, cluster)
		w.mine.listeners.pace.linger = time.Millisecond
		_, stop := w.mine.Listen("k")
		ready, stopOther := w.mine.Listen("other")
		awaitReady(t, ready)
		for _, stop := range []func(){stop, stopOther} {
			stop()
			stop()
		}
		suite.Eventually(t, "no channel is left", func() bool {
			for _, node := range w.nodes {
				if node.PubSubNumSub(t.Context(), storetest.ProcessChannel).Val()[storetest.ProcessChannel] > 0 {
					return false
				}
			}
			return true
		})
	})
	t.Run("close before, while and after", func(t *testing.T) {
		for i := range 10 {
			w := newShardWorld(t, cluster)
			_, stop := w.mine.Listen("k")
			time.Sleep(time.Duration(i) * 500 * time.Microsecond)
			if err := w.mine.Close(t.Context()); err != nil {
				t.Error(err)
			}
			stop()
			late, stopLate := w.mine.Listen("k")
			if isReady(late) {
				t.Error("ready after close")
			}
			stopLate()
		}
	})
}

// handPlainly hands a key over where nobody is counted.
func handPlainly(t *testing.T, w *shardWorld, key string) {
	t.Helper()
	w.waits++
	held, waits := storetest.Request(fmt.Sprintf("%s:%d", storetest.Bob, w.waits)), storetest.Request(fmt.Sprintf("%s:%d", storetest.Me, w.waits))
	held.Key, waits.Key = key, key
	if got, err := w.bobs.Enqueue(t.Context(), held); err != nil || !got.Granted {
		t.Fatalf("bob: %+v, %v", got, err)
	}
	if got, err := w.mine.Enqueue(t.Context(), waits); err != nil || got.Granted {
		t.Fatalf("me: %+v, %v", got, err)
	}
	if got, err := w.bobs.Release(t.Context(), held); err != nil || got.Status != store.Handed {
		t.Errorf("%s: %+v, %v", key, got, err)
	}
	w.await(t, map[hint]bool{{key, waits.Token}: true})
	if got, err := w.mine.Release(t.Context(), waits); err != nil || got.Status != store.Freed {
		t.Errorf("%s: %+v, %v", key, got, err)
	}
}

// Where a rule forbids to subscribe, waiters live by their timers, and the server
// is asked now and then.
func TestAForbiddenChannelIsAskedForNowAndThen(t *testing.T) {
	cluster := redistest.StartCluster(t, "--user", "app", "on", "nopass", "~*", "&*", "+@all", "-ssubscribe")
	w := newShardWorld(t, cluster, func(o *redis.ClusterOptions) { o.Username, o.Password = "app", "any" })
	w.mine.sharded.pace.shortest = 20 * time.Millisecond
	begun := time.Now()
	ready, stop := w.mine.Listen("k")
	defer stop()
	master := w.nodes[cluster.MasterOf("p:k")]
	refused := func() (n int) {
		stats := master.InfoMap(t.Context(), "commandstats").Val()["Commandstats"]["cmdstat_ssubscribe"]
		_, _ = fmt.Sscanf(stats, "calls=0,usec=0,usec_per_call=0.00,rejected_calls=%d", &n)
		return n
	}
	suite.Eventually(t, "five attempts", func() bool { return refused() >= 5 })
	// At least 10, 20, 40 and 80 ms are between them.
	if n, since := refused(), time.Since(begun); n > 5+int(since/(100*time.Millisecond)) {
		t.Errorf("%d attempts in %v", n, since)
	}
	if isReady(ready) || w.mine.mode.Load() != "S" {
		t.Errorf("ready %v in mode %v", isReady(ready), w.mine.mode.Load())
	}
	w.noHint(t)
	for _, node := range w.nodes {
		if err := node.Do(t.Context(), "acl", "setuser", "app", "+ssubscribe").Err(); err != nil {
			t.Fatal(err)
		}
	}
	awaitReady(t, ready)
	w.handOver(t, "k")
}

// A cluster client of a Sentinel set has all slots on one master.
func TestShardedChannelsBehindSentinel(t *testing.T) {
	if redistest.MinimalRights() {
		t.Skip("servers that are no cluster do not grant the rights of a cluster")
	}
	sentinels := redistest.StartSentinel(t)
	w := newShardWorldOf(t, sentinels.Servers(), func(string) *redistest.Server { return sentinels.Master() },
		func() *redis.ClusterClient {
			options := &redis.FailoverOptions{MasterName: redistest.MasterName, ReadTimeout: time.Second, DialerRetries: 1}
			for _, watcher := range sentinels.Sentinels() {
				options.SentinelAddrs = append(options.SentinelAddrs, watcher.Addr())
			}
			rdb := redis.NewFailoverClusterClient(options)
			t.Cleanup(func() { closeFailoverCluster(t, rdb, sentinels) })
			return rdb
		})
	w.listen(t, "k", "other")
	w.handOver(t, "k")
	for name, fail := range map[string]func() *redistest.Server{"a switch": sentinels.Switch, "a crash": sentinels.Failover} {
		t.Run(name, func(t *testing.T) {
			before := sentinels.Master()
			fail()
			w.awaitGap(t, "k", "other")
			again, stop := w.mine.Listen("k")
			defer stop()
			awaitReady(t, again)
			w.handOver(t, "k")
			w.handOver(t, "other")
			before.Restart()
			sentinels.Await()
		})
	}
}

// closeFailoverCluster closes the client, which leaves its subscription at a Sentinel
// open, and then ends that: the client gives it up when it asks a Sentinel for the
// master, and none is there.
func closeFailoverCluster(t *testing.T, rdb *redis.ClusterClient, sentinels *redistest.Sentinels) {
	t.Helper()
	_ = rdb.Close()
	for _, watcher := range sentinels.Sentinels() {
		watcher.Kill()
	}
	if _, err := rdb.Options().ClusterSlots(context.Background()); err == nil {
		t.Error("a master is known without a Sentinel")
	}
}
