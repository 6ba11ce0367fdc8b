package pubsub

import (
	"context"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A channel is never left where nobody says anything, however its master goes.
func TestChannelsFollowTheirSlot(t *testing.T) {
	cluster := redistest.StartCluster(t)
	events := []struct {
		name string
		// do makes the slot's master another one.
		do func(t *testing.T, name string, master, other *redistest.Server)
	}{
		{"a moved slot", func(_ *testing.T, name string, _, other *redistest.Server) {
			cluster.MoveSlot(name, other)
		}},
		{"a slot on its way", func(t *testing.T, name string, _, other *redistest.Server) {
			client := cluster.Client(t)
			for _, key := range []string{name, "{" + name + "}:q"} {
				if err := client.RPush(t.Context(), "{"+name+"}"+key, "x").Err(); err != nil {
					t.Fatal(err)
				}
			}
			move := cluster.BeginMove(name, other)
			move.Keys("{" + name + "}" + name)
			move.Finish()
		}},
		{"a switch", func(_ *testing.T, _ string, master, _ *redistest.Server) {
			cluster.Switch(master)
		}},
		{"a takeover", func(_ *testing.T, _ string, master, _ *redistest.Server) {
			cluster.Takeover(master)
		}},
		{"a crash", func(t *testing.T, _ string, master, _ *redistest.Server) {
			cluster.Failover(master)
			t.Cleanup(func() { master.Restart(); cluster.Await() })
		}},
		{"a master that stands still", func(t *testing.T, _ string, master, _ *redistest.Server) {
			master.Pause()
			cluster.AwaitFailover(master)
			t.Cleanup(func() { master.Resume(); cluster.Await() })
		}},
	}
	for _, event := range events {
		t.Run(event.name, func(t *testing.T) {
			cluster.Await()
			masters := cluster.Masters()
			w := newShardWorld(t, cluster)
			keys := w.keysOf(t, masters...)
			w.listen(t, keys...)
			closed := closeWhenLost(t, w, keys[0])
			name := "p:" + keys[0]
			event.do(t, name, masters[0], masters[1])
			w.awaitGap(t, keys[0])
			<-closed
			if w.masterOf(name) == masters[0] {
				t.Fatal("nothing has happened")
			}
			again, stop := w.mine.Listen(keys[0])
			defer stop()
			awaitReady(t, again)
			for _, key := range keys {
				w.handOver(t, key)
			}
		})
	}
}

// A script that runs where keys have moved to, before their slot has, finds nobody
// who listens there: it frees the key, and the waiters find it by their timers.
func TestNobodyIsCountedForKeysThatAreAheadOfTheirSlot(t *testing.T) {
	cluster := redistest.StartCluster(t)
	w := newShardWorld(t, cluster)
	w.listen(t, "k")
	if got, err := w.bobs.Enqueue(t.Context(), storetest.Request(storetest.Bob1)); err != nil || !got.Granted {
		t.Fatalf("bob: %+v, %v", got, err)
	}
	if got, err := w.mine.Enqueue(t.Context(), storetest.Request(storetest.Me1)); err != nil || got.Granted {
		t.Fatalf("me: %+v, %v", got, err)
	}
	from := cluster.MasterOf(storetest.LockName)
	other := cluster.Masters()[0]
	if other == from {
		other = cluster.Masters()[1]
	}
	move := cluster.BeginMove(storetest.LockName, other)
	move.Keys(storetest.LockName, storetest.QueueName)
	if got, err := w.bobs.Release(t.Context(), storetest.Request(storetest.Bob1)); err != nil || got.Status != store.Freed {
		t.Errorf("bob: %+v, %v", got, err)
	}
	w.noHint(t)
	move.Finish()
	w.awaitGap(t, "k")
	if got, err := w.mine.Enqueue(t.Context(), storetest.Request(storetest.Me1)); err != nil || !got.Granted {
		t.Errorf("me: %+v, %v", got, err)
	}
	if got, err := w.mine.Release(t.Context(), storetest.Request(storetest.Me1)); err != nil || got.Status != store.Freed {
		t.Errorf("me: %+v, %v", got, err)
	}
	w.handOver(t, "k")
}

// closeWhenLost closes another store, of eve, as soon as it has lost its channel.
func closeWhenLost(t *testing.T, w *shardWorld, key string) (closed <-chan struct{}) {
	t.Helper()
	s := newStoreOf(t, w.rdb, storetest.Eve)
	ready, stop := s.Listen(key)
	awaitReady(t, ready)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer stop()
		for isReady(ready) {
			time.Sleep(time.Millisecond)
			again, stop := s.Listen(key)
			stop()
			ready = again
		}
		if err := s.Close(context.Background()); err != nil || isReady(ready) {
			t.Errorf("close: %v, ready %v", err, isReady(ready))
		}
	}()
	return done
}

// While a shard is dead for good, the others serve.
func TestADeadMasterHoldsUpNoChannelOfAnother(t *testing.T) {
	cluster := redistest.StartCluster(t, "--cluster-require-full-coverage", "no")
	masters := cluster.Masters()
	w := newShardWorld(t, cluster)
	keys := w.keysOf(t, masters...)
	w.listen(t, keys[0], keys[1])
	for _, node := range []*redistest.Server{cluster.ReplicaOf(masters[0]), masters[0]} {
		node.Kill()
	}
	lost, stop := w.mine.Listen(keys[0])
	suite.Eventually(t, "the loss is noticed", func() bool {
		stop()
		lost, stop = w.mine.Listen(keys[0])
		return !isReady(lost)
	})
	w.listen(t, keys[2])
	for _, key := range keys[1:] {
		w.handOver(t, key)
	}
	if isReady(lost) {
		t.Error("ready at a dead master")
	}
	stop()
	masters[0].Restart()
	w.awaitGap(t, keys[0])
	w.handOver(t, keys[0])
}
