package pubsub

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The slot table of a client may be wrong for a while.
func TestChannelFindsItsMasterAfterAWrongSlotTable(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
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
