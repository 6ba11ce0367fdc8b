package pubsub

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A masterChange gives the slot of a lock name another master. other is a second master of
// the cluster.
type masterChange struct {
	name string
	do   func(t *testing.T, cluster *redistest.Cluster, name string, master, other *redistest.Server)
}

// plannedChanges leave all nodes running.
var plannedChanges = []masterChange{
	{"slot moved with its keys", func(t *testing.T, cluster *redistest.Cluster, name string, _, other *redistest.Server) {
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
	{"switch", func(_ *testing.T, cluster *redistest.Cluster, _ string, master, _ *redistest.Server) {
		cluster.Switch(master)
	}},
	{"takeover", func(_ *testing.T, cluster *redistest.Cluster, _ string, master, _ *redistest.Server) {
		cluster.Takeover(master)
	}},
}

// failures stop the master.
var failures = []masterChange{
	{"crash", func(t *testing.T, cluster *redistest.Cluster, _ string, master, _ *redistest.Server) {
		cluster.Failover(master)
		t.Cleanup(master.Restart)
	}},
	{"master paused", func(t *testing.T, cluster *redistest.Cluster, _ string, master, _ *redistest.Server) {
		master.Pause()
		cluster.AwaitFailover(master)
		t.Cleanup(master.Resume)
	}},
}

func TestChannelsFollowAPlannedChange(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	for i, change := range plannedChanges {
		// A shard that has just elected a master cannot elect the next one for two seconds.
		t.Run(change.name, func(t *testing.T) {
			if i > 0 {
				suite.Full(t, "repeats the test with another change")
			}
			testChannelsFollow(t, cluster, i, change)
		})
	}
}

func TestChannelsFollowAFailure(t *testing.T) {
	t.Parallel()
	for i, change := range failures {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			if i > 0 {
				suite.Full(t, "repeats the test with another failure")
			}
			testChannelsFollow(t, redistest.StartCluster(t), 0, change)
		})
	}
}

// testChannelsFollow makes a change of one shard. The change must move the channel of the slot
// to the new master, and must leave the channels of the others working.
func testChannelsFollow(t *testing.T, cluster *redistest.Cluster, shard int, change masterChange) {
	t.Helper()
	cluster.Await()
	masters := cluster.Masters()
	shard %= len(masters)
	masters = slices.Concat(masters[shard:], masters[:shard])
	c := newClusterTest(t, cluster)
	keys := c.keysOf(t, masters...)
	c.listen(t, keys...)
	closed := closeWhenNotReady(t, c, keys[0])
	name := "p:" + keys[0]
	change.do(t, cluster, name, masters[0], masters[1])
	c.awaitGapHints(t, keys[0])
	suite.AwaitClosed(t, "closed", closed)
	if c.masterOf(name) == masters[0] {
		t.Fatal("the slot has the same master")
	}
	again, stop := c.me.Listen(keys[0])
	defer stop()
	suite.AwaitClosed(t, "ready", again)
	for _, key := range keys {
		c.handOff(t, key)
	}
}

// While a slot is being moved, its keys may be at the new master already. A script that runs
// there finds no subscriber. It frees the key, and the waiters notice that by their timers.
func TestNoSubscriberAtTheNewMasterOfAMovingSlot(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	c := newClusterTest(t, cluster)
	c.listen(t, "k")
	if got, err := c.bob.Enqueue(t.Context(), storetest.Request(storetest.Bob1)); err != nil || !got.Granted {
		t.Fatalf("Bob: %+v, %v", got, err)
	}
	if got, err := c.me.Enqueue(t.Context(), storetest.Request(storetest.Me1)); err != nil || got.Granted {
		t.Fatalf("Me: %+v, %v", got, err)
	}
	from := cluster.MasterOf(storetest.LockName)
	other := cluster.Masters()[0]
	if other == from {
		other = cluster.Masters()[1]
	}
	move := cluster.BeginMove(storetest.LockName, other)
	move.Keys(storetest.LockName, storetest.QueueName)
	if got, err := c.bob.Release(t.Context(), storetest.Request(storetest.Bob1)); err != nil || got.Status != store.Freed {
		t.Errorf("Bob: %+v, %v", got, err)
	}
	c.requireNoHint(t)
	move.Finish()
	c.awaitGapHints(t, "k")
	if got, err := c.me.Enqueue(t.Context(), storetest.Request(storetest.Me1)); err != nil || !got.Granted {
		t.Errorf("Me: %+v, %v", got, err)
	}
	if got, err := c.me.Release(t.Context(), storetest.Request(storetest.Me1)); err != nil || got.Status != store.Freed {
		t.Errorf("Me: %+v, %v", got, err)
	}
	c.handOff(t, "k")
}

// closeWhenNotReady listens with a store of the process Eve, and closes the store as soon as
// the subscription has ended, or after the hint about that if the end was not seen: on a busy
// machine the next subscription may be ready before the next check. The result is closed after
// that.
func closeWhenNotReady(t *testing.T, c *clusterTest, key string) (closed <-chan struct{}) {
	t.Helper()
	s := newStoreOf(t, c.rdb, storetest.Eve)
	hints := hintsOf(s)
	ready, stop := s.Listen(key)
	suite.AwaitClosed(t, "ready", ready)
	nextHint(t, hints)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer stop()
		for suite.IsClosed(ready) && len(hints) == 0 {
			time.Sleep(time.Millisecond)
			again, stop := s.Listen(key)
			stop()
			ready = again
		}
		err := s.Close(context.Background())
		if late, _ := s.Listen(key); err != nil || suite.IsClosed(late) {
			t.Errorf("Close: %v, ready after it: %v", err, suite.IsClosed(late))
		}
	}()
	return done
}

// While a shard has no running node, the channels of the other shards work.
func TestDeadShardDoesNotAffectOtherShards(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, "--cluster-require-full-coverage", "no")
	masters := cluster.Masters()
	c := newClusterTest(t, cluster)
	keys := c.keysOf(t, masters...)
	c.listen(t, keys[0], keys[1])
	for _, node := range []*redistest.Server{cluster.ReplicaOf(masters[0]), masters[0]} {
		node.Kill()
	}
	lost, stop := c.me.Listen(keys[0])
	suite.Eventually(t, "the subscription has ended", func() bool {
		stop()
		lost, stop = c.me.Listen(keys[0])
		return !suite.IsClosed(lost)
	})
	c.listen(t, keys[2])
	for _, key := range keys[1:] {
		c.handOff(t, key)
	}
	if suite.IsClosed(lost) {
		t.Error("a key of the dead shard is ready")
	}
	stop()
	masters[0].Restart()
	c.awaitGapHints(t, keys[0])
	c.handOff(t, keys[0])
}

// The slot table of a client may be wrong for a while.
func testChannelFindsItsMasterAfterAWrongSlotTable(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	slots := cluster.Nodes()[0].Client(t).ClusterSlots //nolint:staticcheck // go-redis calls it, too
	tables := map[string]func(table []redis.ClusterSlot){
		"another master": func(table []redis.ClusterSlot) {
			first := table[0].Nodes
			for i := range len(table) - 1 {
				table[i].Nodes = table[i+1].Nodes
			}
			table[len(table)-1].Nodes = first
		},
		"a replica, which confirms but does not count": func(table []redis.ClusterSlot) {
			for i := range table {
				slices.Reverse(table[i].Nodes)
			}
		},
		"no master": func(table []redis.ClusterSlot) {
			for i := range table {
				table[i].Start, table[i].End = 0, 0
			}
		},
		"a node that does not exist": func(table []redis.ClusterSlot) {
			for i := range table {
				table[i].Nodes = []redis.ClusterNode{{Addr: "127.0.0.1:1"}}
			}
		},
	}
	for name, falsify := range tables {
		t.Run(name, func(t *testing.T) {
			var wrongLoads atomic.Int32 // how many of the next loads return a wrong table
			c := newClusterTest(t, cluster)
			rdb := cluster.Client(t, func(o *redis.ClusterOptions) {
				o.DialerRetries = 1
				o.ClusterSlots = func(ctx context.Context) ([]redis.ClusterSlot, error) {
					table, err := slots(ctx).Result()
					if err == nil && wrongLoads.Add(-1) >= 0 {
						falsify(table)
					}
					return table, err
				}
			})
			c.me = newStore(t, rdb)
			c.me.sharded.timing.minBackoff = quick.minBackoff
			c.hints = hintsOf(c.me)
			keys := c.keysOf(t, cluster.Masters()...)
			c.listen(t, keys...)
			wrongLoads.Store(3)
			for _, node := range c.nodes {
				if err := node.ClientKillByFilter(t.Context(), "type", "pubsub").Err(); err != nil {
					t.Fatal(err)
				}
			}
			c.awaitGapHints(t, keys...)
			// When the client loads the second right table, it uses the first one.
			suite.Eventually(t, "the client has loaded a right table", func() bool { return wrongLoads.Load() <= -2 })
			for _, key := range keys {
				again, stop := c.me.Listen(key)
				defer stop()
				suite.AwaitClosed(t, "ready", again)
				c.handOff(t, key)
			}
		})
	}
}

// A caller of Listen may hold a mutex, so Listen must not wait for the client.
func testListenDoesNotWaitForTheSlotTable(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	slots := cluster.Nodes()[0].Client(t).ClusterSlots //nolint:staticcheck // go-redis calls it, too
	table := func(ctx context.Context) ([]redis.ClusterSlot, error) { return slots(ctx).Result() }
	tests := map[string]func(o *redis.ClusterOptions, begun chan<- struct{}, release <-chan struct{}){
		"an option ClusterSlots that hangs": func(o *redis.ClusterOptions, begun chan<- struct{}, release <-chan struct{}) {
			o.ClusterSlots = func(ctx context.Context) ([]redis.ClusterSlot, error) {
				begun <- struct{}{}
				<-release
				return table(ctx)
			}
		},
		"an option ClusterSlots that fails at first": func(o *redis.ClusterOptions, begun chan<- struct{}, release <-chan struct{}) {
			failures := 0
			o.ClusterSlots = func(ctx context.Context) ([]redis.ClusterSlot, error) {
				if failures++; failures <= 3 {
					return nil, errors.New("no slot table")
				}
				begun <- struct{}{}
				<-release
				return table(ctx)
			}
		},
	}
	for name, configure := range tests {
		for _, closes := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				begun, release := make(chan struct{}, 100), make(chan struct{})
				s := newStore(t, cluster.Client(t, func(o *redis.ClusterOptions) { configure(o, begun, release) }))
				s.sharded.timing.minBackoff = quick.minBackoff
				hints := hintsOf(s)
				first, stop := s.Listen("k")
				defer stop()
				suite.Receive(t, "an attempt begins", begun)
				second, stopSecond := s.Listen("other")
				defer stopSecond()
				if suite.IsClosed(first) || suite.IsClosed(second) || s.Mode() != oneMaster {
					t.Errorf("ready without a slot table, or in mode %v", s.Mode())
				}
				if closes {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
					defer cancel()
					if err := s.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Close: %v", err)
					}
					close(release)
					if err := s.Close(t.Context()); err != nil || suite.IsClosed(first) {
						t.Errorf("second Close: %v, ready %v", err, suite.IsClosed(first))
					}
					return
				}
				close(release)
				suite.AwaitClosed(t, "ready", first)
				suite.AwaitClosed(t, "ready", second)
				for range 2 {
					if got := nextHint(t, hints); got.token != "" {
						t.Errorf("hint %v", got)
					}
				}
			})
		}
	}
}
