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

func TestShardedChannels(t *testing.T) {
	cluster := redistest.StartCluster(t)
	masters := cluster.Masters()

	t.Run("a hint comes from each master", func(t *testing.T) {
		w := newShardWorld(t, cluster)
		keys := w.keysOf(t, masters...)
		w.listen(t, keys...)
		odd := []string{"{a}:q", "a}b", "open{brace"} // the first two are written as digests
		w.listen(t, odd...)
		for _, key := range append(keys, odd...) {
			w.handOver(t, key)
		}
	})

	t.Run("those of a master share a connection", func(t *testing.T) {
		w := newShardWorld(t, cluster)
		var keys []string
		for i := range 300 {
			keys = append(keys, fmt.Sprint(i))
		}
		w.listen(t, keys...)
		sum := 0
		for _, master := range masters {
			if n := w.connections(t, master); n != 1 {
				t.Errorf("%d connections", n)
			}
			sum += w.channels(t, master)
		}
		if sum != len(keys) {
			t.Errorf("%d channels", sum)
		}
		w.noHint(t)
	})

	t.Run("a dead waiter is skipped at once", func(t *testing.T) {
		w := newShardWorld(t, cluster)
		w.listen(t, "k")
		for i, want := range []store.ReleaseStatus{store.Handed, store.Freed} {
			held := storetest.Request(fmt.Sprintf("%s:%d", storetest.Bob, 100+i))
			lines := [][]string{{storetest.Eve1, storetest.Me2}, {storetest.Eve1}}
			waiting := []any{lines[i][0]}
			if i == 0 {
				waiting = append(waiting, lines[i][1])
			}
			if got, err := w.bobs.Enqueue(t.Context(), held); err != nil || !got.Granted {
				t.Fatalf("%+v, %v", got, err)
			}
			if err := w.rdb.RPush(t.Context(), storetest.QueueName, waiting...).Err(); err != nil {
				t.Fatal(err)
			}
			if got, err := w.bobs.Release(t.Context(), held); err != nil || got.Status != want {
				t.Errorf("%+v, %v, want %v", got, err, want)
			}
			if i == 0 {
				w.await(t, map[hint]bool{{"k", storetest.Me2}: true})
				r := storetest.Request(storetest.Me2)
				if got, err := w.mine.Release(t.Context(), r); err != nil || got.Status != store.Freed {
					t.Errorf("%+v, %v", got, err)
				}
			}
		}
	})

	t.Run("a channel outlives the last wait by its linger", func(t *testing.T) {
		w := newShardWorld(t, cluster)
		keys := w.keysOf(t, masters...)
		w.mine.sharded.pace.linger = time.Hour
		ready, stop := w.mine.Listen(keys[0])
		awaitReady(t, ready)
		w.awaitGap(t, keys[0])
		stop()
		stop() // counts once
		again, stop := w.mine.Listen(keys[0])
		if !isReady(again) {
			t.Error("not ready, though the channel is")
		}
		w.noHint(t)
		stop()
		suite.Eventually(t, "its channel is left, and none of other tests", func() bool { return w.channels(t, masters[0]) == 1 })
	})

	t.Run("a channel outlives it no longer", func(t *testing.T) {
		w := newShardWorld(t, cluster)
		keys := w.keysOf(t, masters...)
		suite.Eventually(t, "those of other tests have gone", func() bool { return w.channels(t, masters[0]) == 0 })
		w.mine.sharded.pace.linger, w.mine.sharded.pace.silence = time.Millisecond, 10*time.Millisecond
		_, stop := w.mine.Listen(keys[0])
		_, stopOther := w.mine.Listen(keys[1])
		w.awaitGap(t, keys[0], keys[1])
		stopOther()
		stopOther() // counts once
		suite.Eventually(t, "the other one is unsubscribed", func() bool { return w.channels(t, masters[1]) == 0 })
		if n := w.channels(t, masters[0]); n != 1 {
			t.Errorf("%d channels are left", n)
		}
		stop()
		for _, master := range masters {
			suite.Eventually(t, "no channel is left", func() bool { return w.channels(t, master) == 0 })
		}
		suite.Eventually(t, "the second connection has ended", func() bool { return w.connections(t, masters[1]) == 0 })
		w.listen(t, keys...)
		w.handOver(t, keys[1])
	})

	t.Run("a channel is subscribed while it is left and wanted again", func(t *testing.T) {
		w := newShardWorld(t, cluster)
		w.mine.sharded.pace.linger = time.Microsecond
		for range 200 {
			_, stop := w.mine.Listen("k")
			stop()
		}
		w.listen(t, "k")
		suite.Eventually(t, "it is subscribed", func() bool { return w.channels(t, cluster.MasterOf("p:k")) == 1 })
		w.handOver(t, "k")
	})

	t.Run("a lost connection is made anew", func(t *testing.T) {
		w := newShardWorld(t, cluster)
		keys := w.keysOf(t, masters...)
		w.listen(t, keys...)
		for range 3 {
			if err := w.nodes[masters[0]].ClientKillByFilter(t.Context(), "type", "pubsub").Err(); err != nil {
				t.Fatal(err)
			}
			w.awaitGap(t, keys[0])
			w.noHint(t)
		}
		w.handOver(t, keys[0])
	})

	t.Run("RESP2", func(t *testing.T) {
		w := newShardWorld(t, cluster, func(o *redis.ClusterOptions) { o.Protocol = 2 })
		w.mine.sharded.pace = quick
		keys := w.keysOf(t, masters...)
		w.listen(t, keys...)
		for _, key := range keys {
			w.handOver(t, key)
		}
		cluster.MoveSlot("p:"+keys[0], masters[1])
		w.awaitGap(t, keys[0])
		w.handOver(t, keys[0])
		cluster.MoveSlot("p:"+keys[0], masters[0])
		w.awaitGap(t, keys[0])
	})

	t.Run("a quiet connection is kept", func(t *testing.T) {
		w := newShardWorld(t, cluster)
		w.mine.sharded.pace = quick
		w.listen(t, "k")
		pings := func() int {
			info := w.nodes[cluster.MasterOf("p:k")].InfoMap(t.Context(), "commandstats").Val()
			var calls int
			_, _ = fmt.Sscanf(info["Commandstats"]["cmdstat_ping"], "calls=%d", &calls)
			return calls
		}
		before := pings()
		suite.Eventually(t, "five questions", func() bool { return pings() >= before+5 })
		w.noHint(t)
		s := w.mine.sharded
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, conn := range s.conns {
			if n := len(conn.asked); n > 1 { // one may be under way
				t.Errorf("%d words are left without an answer", n)
			}
		}
	})

	t.Run("whoever hears a hint may listen and stop", func(t *testing.T) {
		w := newShardWorld(t, cluster)
		done := make(chan struct{}, 10)
		w.mine.OnHint(func(string, string) {
			_, stop := w.mine.Listen("other")
			stop()
			done <- struct{}{}
		})
		_, stop := w.mine.Listen("k")
		defer stop()
		<-done
	})

	t.Run("close", func(t *testing.T) {
		w := newShardWorld(t, cluster)
		keys := w.keysOf(t, masters...)
		_, stopFirst := w.mine.Listen(keys[0])
		w.awaitGap(t, keys[0])
		stopFirst() // lingers
		pending, stop := w.mine.Listen(keys[1])
		for range 2 {
			if err := w.mine.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		for _, master := range masters {
			suite.Eventually(t, "no connection is left", func() bool { return w.connections(t, master) == 0 })
		}
		wasReady := isReady(pending)
		stop()
		late, stopLate := w.mine.Listen(keys[2])
		again, stopAgain := w.mine.Listen(keys[1])
		stopLate()
		stopAgain()
		if isReady(late) || isReady(again) || isReady(pending) != wasReady {
			t.Error("ready after close")
		}
	})
}
