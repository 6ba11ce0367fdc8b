package pubsub

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A shardWorld is the processes me and bob on a cluster. me listens.
type shardWorld struct {
	masterOf func(name string) *redistest.Server
	nodes    map[*redistest.Server]*redis.Client
	rdb      *redis.ClusterClient
	mine     *syncStore
	bobs     *syncStore
	hints    <-chan hint
	waits    int // that have been
}

// newShardWorld returns the processes on a cluster, with clients of their own.
func newShardWorld(t *testing.T, cluster *redistest.Cluster, configure ...func(*redis.ClusterOptions)) *shardWorld {
	t.Helper()
	// A node that stands still does not hold up what asks it for the table.
	configure = append([]func(*redis.ClusterOptions){func(o *redis.ClusterOptions) { o.ReadTimeout = time.Second }}, configure...)
	return newShardWorldOf(t, cluster.Nodes(), cluster.MasterOf, func() *redis.ClusterClient { return cluster.Client(t, configure...) })
}

func newShardWorldOf(t *testing.T, nodes []*redistest.Server, masterOf func(string) *redistest.Server, client func() *redis.ClusterClient) *shardWorld {
	t.Helper()
	w := &shardWorld{masterOf: masterOf, rdb: client(), nodes: make(map[*redistest.Server]*redis.Client)}
	w.mine, w.bobs = newStore(t, w.rdb), newStoreOf(t, client(), storetest.Bob)
	w.mine.sharded.pace.shortest = quick.shortest
	w.hints = hintsOf(w.mine)
	for _, node := range nodes {
		w.nodes[node] = node.Client(t, func(o *redis.Options) { o.ReadTimeout = time.Second })
	}
	return w
}

// keysOf returns a key of each master, in their order.
func (w *shardWorld) keysOf(t *testing.T, masters ...*redistest.Server) []string {
	t.Helper()
	keys := make([]string, len(masters))
	for i, master := range masters {
		for n := 0; keys[i] == ""; n++ {
			if key := fmt.Sprintf("k%d", n); w.masterOf("p:"+key) == master {
				keys[i] = key
			}
		}
	}
	return keys
}

// listen listens for keys until the test ends, and returns when the servers have
// confirmed it. Those hints are taken.
func (w *shardWorld) listen(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		ready, stop := w.mine.Listen(key)
		t.Cleanup(stop)
		awaitReady(t, ready)
	}
	w.awaitGap(t, keys...)
}

// awaitReady fails the test unless the channel is closed in time.
func awaitReady(t *testing.T, ready <-chan struct{}) {
	t.Helper()
	suite.Eventually(t, "it is ready", func() bool { return isReady(ready) })
}

// awaitGap waits until all of the keys have been hinted at because of a gap.
func (w *shardWorld) awaitGap(t *testing.T, keys ...string) {
	t.Helper()
	left := make(map[hint]bool)
	for _, key := range keys {
		left[hint{key, ""}] = true
	}
	w.await(t, left)
}

// await waits for hints.
func (w *shardWorld) await(t *testing.T, left map[hint]bool) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for len(left) > 0 {
		select {
		case got := <-w.hints:
			delete(left, got)
		case <-timeout:
			t.Fatalf("no hints %v", left)
		}
	}
}

// awaitCounted waits until one listens for the key at the master of its slot.
func (w *shardWorld) awaitCounted(t *testing.T, key string) {
	t.Helper()
	lock := w.mine.names.Lock(key)
	channel, master := w.mine.names.ShardChannel(lock, storetest.Me), w.nodes[w.masterOf(lock)]
	suite.Eventually(t, "it is counted", func() bool {
		return master.PubSubShardNumSub(t.Context(), channel).Val()[channel] == 1
	})
}

// noHint fails the test if there is one.
func (w *shardWorld) noHint(t *testing.T) {
	t.Helper()
	select {
	case got := <-w.hints:
		t.Errorf("hint %v", got)
	default:
	}
}

// handOver lets bob hold a key for which me waits, and give it on.
func (w *shardWorld) handOver(t *testing.T, key string) {
	t.Helper()
	w.awaitCounted(t, key)
	w.waits++
	held, waits := storetest.Request(fmt.Sprintf("%s:%d", storetest.Bob, w.waits)), storetest.Request(fmt.Sprintf("%s:%d", storetest.Me, w.waits))
	held.Key, waits.Key = key, key
	var got store.Answer
	var err error
	suite.Eventually(t, "bob holds the key", func() bool {
		got, err = w.bobs.Enqueue(t.Context(), held)
		return err == nil
	})
	if !got.Granted {
		t.Fatalf("bob: %+v", got)
	}
	if got, err := w.mine.Enqueue(t.Context(), waits); err != nil || got.Granted {
		t.Fatalf("me: %+v, %v", got, err)
	}
	if got, err := w.bobs.Release(t.Context(), held); err != nil || got.Status != store.Handed {
		t.Errorf("%s is not handed over: %+v, %v", key, got, err)
	}
	w.await(t, map[hint]bool{{key, waits.Token}: true})
	if got, err := w.mine.Release(t.Context(), waits); err != nil || got.Status != store.Freed {
		t.Errorf("%s is not released: %+v, %v", key, got, err)
	}
}

// connections returns how many connections listen at a node.
func (w *shardWorld) connections(t *testing.T, node *redistest.Server) int {
	t.Helper()
	list, err := w.nodes[node].Do(t.Context(), "client", "list", "type", "pubsub").Text()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(list, "\n")
}

// channels returns how many channels somebody listens on at a node.
func (w *shardWorld) channels(t *testing.T, node *redistest.Server) int {
	t.Helper()
	channels, err := w.nodes[node].PubSubShardChannels(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return len(channels)
}
