package pubsub

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The subtests are serial, because they count the channels and connections of one cluster.
func TestShardedChannels(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	masters := cluster.Masters()

	t.Run("hints from each master", func(t *testing.T) {
		c := newClusterTest(t, cluster)
		keys := c.keysOf(t, masters...)
		c.listen(t, keys...)
		odd := []string{"{a}:q", "a}b", "open{brace"} // the lock names of the first two contain digests
		c.listen(t, odd...)
		for _, key := range append(keys, odd...) {
			c.handOff(t, key)
		}
	})

	t.Run("the channels at a master share a connection", func(t *testing.T) {
		c := newClusterTest(t, cluster)
		var keys []string
		for i := range 300 {
			keys = append(keys, fmt.Sprint(i))
		}
		c.listen(t, keys...)
		sum := 0
		for _, master := range masters {
			if n := c.connections(t, master); n != 1 {
				t.Errorf("%d connections to a master, want 1", n)
			}
			sum += c.channels(t, master)
		}
		if sum != len(keys) {
			t.Errorf("%d channels, want %d", sum, len(keys))
		}
		c.requireNoHint(t)
	})

	t.Run("a waiter without a subscription is skipped", func(t *testing.T) {
		c := newClusterTest(t, cluster)
		c.listen(t, "k")
		for i, want := range []store.ReleaseStatus{store.Handed, store.Freed} {
			held := storetest.Request(fmt.Sprintf("%s:%d", storetest.Bob, 100+i))
			waiting := []any{storetest.Eve1}
			if want == store.Handed {
				waiting = append(waiting, storetest.Me2)
			}
			if got, err := c.bob.Enqueue(t.Context(), held); err != nil || !got.Granted {
				t.Fatalf("%+v, %v", got, err)
			}
			if err := c.rdb.RPush(t.Context(), storetest.QueueName, waiting...).Err(); err != nil {
				t.Fatal(err)
			}
			if got, err := c.bob.Release(t.Context(), held); err != nil || got.Status != want {
				t.Errorf("%+v, %v, want %v", got, err, want)
			}
			if want == store.Handed {
				c.awaitHints(t, map[hint]bool{{"k", storetest.Me2}: true})
				r := storetest.Request(storetest.Me2)
				if got, err := c.me.Release(t.Context(), r); err != nil || got.Status != store.Freed {
					t.Errorf("%+v, %v", got, err)
				}
			}
		}
	})

	t.Run("a channel outlives its last listener", func(t *testing.T) {
		c := newClusterTest(t, cluster)
		keys := c.keysOf(t, masters...)
		c.me.sharded.timing.linger = time.Hour
		ready, stop := c.me.Listen(keys[0])
		suite.AwaitClosed(t, "ready", ready)
		c.awaitGapHints(t, keys[0])
		stop()
		stop() // does nothing
		again, stop := c.me.Listen(keys[0])
		if !suite.IsClosed(again) {
			t.Error("not ready, but the channel is confirmed")
		}
		c.requireNoHint(t)
		stop()
		suite.Eventually(t, "only this channel is left", func() bool { return c.channels(t, masters[0]) == 1 })
	})

	t.Run("a channel ends after its linger time", func(t *testing.T) {
		c := newClusterTest(t, cluster)
		keys := c.keysOf(t, masters...)
		suite.Eventually(t, "the channels of other subtests have ended", func() bool { return c.channels(t, masters[0]) == 0 })
		c.me.sharded.timing.linger, c.me.sharded.timing.pingAfter = time.Millisecond, 10*time.Millisecond
		_, stop := c.me.Listen(keys[0])
		_, stopOther := c.me.Listen(keys[1])
		c.awaitGapHints(t, keys[0], keys[1])
		stopOther()
		stopOther() // does nothing
		suite.Eventually(t, "the other channel has ended", func() bool { return c.channels(t, masters[1]) == 0 })
		if n := c.channels(t, masters[0]); n != 1 {
			t.Errorf("%d channels are left", n)
		}
		stop()
		for _, master := range masters {
			suite.Eventually(t, "no channel is left", func() bool { return c.channels(t, master) == 0 })
		}
		suite.Eventually(t, "the second connection has ended", func() bool { return c.connections(t, masters[1]) == 0 })
		c.listen(t, keys...)
		c.handOff(t, keys[1])
	})

	t.Run("a channel is removed and added again at random times", func(t *testing.T) {
		c := newClusterTest(t, cluster)
		c.me.sharded.timing.linger = time.Microsecond
		for range 200 {
			_, stop := c.me.Listen("k")
			stop()
		}
		c.listen(t, "k")
		suite.Eventually(t, "the channel has a subscriber", func() bool { return c.channels(t, cluster.MasterOf("p:k")) == 1 })
		c.handOff(t, "k")
	})

	t.Run("a reconnect hints at the gap", func(t *testing.T) {
		c := newClusterTest(t, cluster)
		keys := c.keysOf(t, masters...)
		c.listen(t, keys...)
		for range 3 {
			if err := c.nodes[masters[0]].ClientKillByFilter(t.Context(), "type", "pubsub").Err(); err != nil {
				t.Fatal(err)
			}
			c.awaitGapHints(t, keys[0])
			c.requireNoHint(t)
		}
		c.handOff(t, keys[0])
	})

	t.Run("RESP2", func(t *testing.T) {
		c := newClusterTest(t, cluster, func(o *redis.ClusterOptions) { o.Protocol = 2 })
		c.me.sharded.timing = quick
		keys := c.keysOf(t, masters...)
		c.listen(t, keys...)
		for _, key := range keys {
			c.handOff(t, key)
		}
		cluster.MoveSlot("p:"+keys[0], masters[1])
		c.awaitGapHints(t, keys[0])
		c.handOff(t, keys[0])
		cluster.MoveSlot("p:"+keys[0], masters[0])
		c.awaitGapHints(t, keys[0])
	})

	t.Run("a connection without messages is kept", func(t *testing.T) {
		c := newClusterTest(t, cluster)
		c.me.sharded.timing = quick
		c.listen(t, "k")
		pings := func() int {
			info := c.nodes[cluster.MasterOf("p:k")].InfoMap(t.Context(), "commandstats").Val()
			var calls int
			_, _ = fmt.Sscanf(info["Commandstats"]["cmdstat_ping"], "calls=%d", &calls)
			return calls
		}
		before := pings()
		suite.Eventually(t, "five pings", func() bool { return pings() >= before+5 })
		c.requireNoHint(t)
		s := c.me.sharded
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, conn := range s.conns {
			if n := len(conn.unanswered); n > 1 { // the reply to the last ping may be outstanding
				t.Errorf("%d unanswered requests", n)
			}
		}
	})

	t.Run("the hint function may listen and stop", func(t *testing.T) {
		c := newClusterTest(t, cluster)
		done := make(chan struct{}, 10)
		c.me.OnHint(func(string, string) {
			_, stop := c.me.Listen("other")
			stop()
			done <- struct{}{}
		})
		_, stop := c.me.Listen("k")
		defer stop()
		suite.Receive(t, "the hint function returns", done)
	})

	t.Run("Close", func(t *testing.T) {
		c := newClusterTest(t, cluster)
		keys := c.keysOf(t, masters...)
		_, stopFirst := c.me.Listen(keys[0])
		c.awaitGapHints(t, keys[0])
		stopFirst() // starts the linger time
		pending, stop := c.me.Listen(keys[1])
		for range 2 {
			if err := c.me.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		for _, master := range masters {
			suite.Eventually(t, "no connection is left", func() bool { return c.connections(t, master) == 0 })
		}
		wasReady := suite.IsClosed(pending)
		stop()
		late, stopLate := c.me.Listen(keys[2])
		again, stopAgain := c.me.Listen(keys[1])
		stopLate()
		stopAgain()
		if suite.IsClosed(late) || suite.IsClosed(again) || suite.IsClosed(pending) != wasReady {
			t.Error("ready after Close")
		}
	})

	t.Run("Listen does not wait for the slot table", func(t *testing.T) { testListenDoesNotWaitForTheSlotTable(t, cluster) })
	t.Run("a wrong slot table", func(t *testing.T) { testChannelFindsItsMasterAfterAWrongSlotTable(t, cluster) })
}
