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

// A clusterTest has the stores of the processes Me and Bob on a cluster, each with a client
// of its own. The test listens with the store of Me.
type clusterTest struct {
	masterOf func(name string) *redistest.Server
	nodes    map[*redistest.Server]*redis.Client
	rdb      *redis.ClusterClient
	me       *testStore
	bob      *testStore
	hints    <-chan hint
	handOffs int // the number of hand-offs so far
}

// newClusterTest returns the stores on a cluster.
func newClusterTest(t *testing.T, cluster *redistest.Cluster, configure ...func(*redis.ClusterOptions)) *clusterTest {
	t.Helper()
	// A paused node delays a load of the slot table by at most the read timeout.
	configure = append([]func(*redis.ClusterOptions){func(o *redis.ClusterOptions) { o.ReadTimeout = time.Second }}, configure...)
	return newClusterTestOf(t, cluster.Nodes(), cluster.MasterOf, func() *redis.ClusterClient { return cluster.Client(t, configure...) })
}

// newClusterTestOf returns the stores on nodes. masterOf returns the master of a lock name.
func newClusterTestOf(t *testing.T, nodes []*redistest.Server, masterOf func(string) *redistest.Server, client func() *redis.ClusterClient) *clusterTest {
	t.Helper()
	c := &clusterTest{masterOf: masterOf, rdb: client(), nodes: make(map[*redistest.Server]*redis.Client)}
	c.me, c.bob = newStore(t, c.rdb), newStoreOf(t, client(), storetest.Bob)
	c.me.sharded.timing.minBackoff = quick.minBackoff
	c.hints = hintsOf(c.me)
	for _, node := range nodes {
		c.nodes[node] = node.Client(t, func(o *redis.Options) { o.ReadTimeout = time.Second })
	}
	return c
}

// keysOf returns a key in a slot of each master, in the order of the masters.
func (c *clusterTest) keysOf(t *testing.T, masters ...*redistest.Server) []string {
	t.Helper()
	keys := make([]string, len(masters))
	for i, master := range masters {
		for n := 0; keys[i] == ""; n++ {
			if n == 10_000 {
				t.Fatalf("no slot of 10,000 keys belongs to %s", master.Addr())
			}
			if key := fmt.Sprint("k", n); c.masterOf("p:"+key) == master {
				keys[i] = key
			}
		}
	}
	return keys
}

// listen listens for keys until the test ends. It returns when the servers have confirmed
// the subscriptions and the hints of the confirmations have arrived.
func (c *clusterTest) listen(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		ready, stop := c.me.Listen(key)
		t.Cleanup(stop)
		suite.AwaitClosed(t, "ready", ready)
	}
	c.awaitGapHints(t, keys...)
}

// awaitGapHints waits until the hint function has been called for a gap of each key.
func (c *clusterTest) awaitGapHints(t *testing.T, keys ...string) {
	t.Helper()
	left := make(map[hint]bool)
	for _, key := range keys {
		left[hint{key, ""}] = true
	}
	c.awaitHints(t, left)
}

// awaitHints waits until all the hints have arrived.
func (c *clusterTest) awaitHints(t *testing.T, left map[hint]bool) {
	t.Helper()
	timeout := time.After(time.Minute)
	for len(left) > 0 {
		select {
		case got := <-c.hints:
			delete(left, got)
		case <-timeout:
			t.Fatalf("missing hints %v", left)
		}
	}
}

// awaitSubscriber waits until the key has a subscriber at the master of its slot.
func (c *clusterTest) awaitSubscriber(t *testing.T, key string) {
	t.Helper()
	lock := c.me.names.Lock(key)
	channel, master := c.me.names.ShardChannel(lock, storetest.Me), c.nodes[c.masterOf(lock)]
	suite.Eventually(t, "the master counts the subscriber", func() bool {
		return master.PubSubShardNumSub(t.Context(), channel).Val()[channel] == 1
	})
}

// requireNoHint fails the test if a hint has arrived.
func (c *clusterTest) requireNoHint(t *testing.T) {
	t.Helper()
	select {
	case got := <-c.hints:
		t.Errorf("unexpected hint %v", got)
	default:
	}
}

// handOff locks a key as Bob, waits for it as Me, and releases it as Bob. The release must
// hand the key to Me, with a hint.
func (c *clusterTest) handOff(t *testing.T, key string) {
	t.Helper()
	c.awaitSubscriber(t, key)
	c.handOffUncounted(t, key)
}

// handOffUncounted is handOff without a subscriber of the key's sharded channel.
func (c *clusterTest) handOffUncounted(t *testing.T, key string) {
	t.Helper()
	held, waits := c.requests(key)
	suite.Eventually(t, "Bob holds the key", func() bool {
		got, err := c.bob.Enqueue(t.Context(), held)
		return err == nil && got.Granted
	})
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

// requests returns requests of Bob and Me for a key, with new tokens.
func (c *clusterTest) requests(key string) (held, waits storetest.AnyRequest) {
	c.handOffs++
	held = storetest.Request(fmt.Sprintf("%s:%d", storetest.Bob, c.handOffs))
	waits = storetest.Request(fmt.Sprintf("%s:%d", storetest.Me, c.handOffs))
	held.Key, waits.Key = key, key
	return held, waits
}

// connections returns the number of connections with subscriptions at a node.
func (c *clusterTest) connections(t *testing.T, node *redistest.Server) int {
	t.Helper()
	list, err := c.nodes[node].Do(t.Context(), "client", "list", "type", "pubsub").Text()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(list, "\n")
}

// channels returns the number of sharded channels with subscribers at a node.
func (c *clusterTest) channels(t *testing.T, node *redistest.Server) int {
	t.Helper()
	channels, err := c.nodes[node].PubSubShardChannels(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return len(channels)
}
