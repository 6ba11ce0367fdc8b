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

// What a client believes of the slots may be wrong for a while.
func TestAChannelFindsItsMasterByAWrongTable(t *testing.T) {
	cluster := redistest.StartCluster(t)
	slots := cluster.Nodes()[0].Client(t).ClusterSlots //nolint:staticcheck // what clients of a cluster ask as well
	tables := map[string]func(table []redis.ClusterSlot){
		"another master": func(table []redis.ClusterSlot) {
			first := table[0].Nodes
			for i := range len(table) - 1 {
				table[i].Nodes = table[i+1].Nodes
			}
			table[len(table)-1].Nodes = first
		},
		"a replica of the master, which lets us subscribe, and is not counted": func(table []redis.ClusterSlot) {
			for i := range table {
				slices.Reverse(table[i].Nodes)
			}
		},
		"nobody": func(table []redis.ClusterSlot) {
			for i := range table {
				table[i].Start, table[i].End = 0, 0
			}
		},
		"a node that is not there": func(table []redis.ClusterSlot) {
			for i := range table {
				table[i].Nodes = []redis.ClusterNode{{Addr: "127.0.0.1:1"}}
			}
		},
	}
	for name, spoil := range tables {
		t.Run(name, func(t *testing.T) {
			var bad atomic.Int32 // so many more loads
			w := newShardWorld(t, cluster)
			rdb := cluster.Client(t, func(o *redis.ClusterOptions) {
				o.DialerRetries = 1
				o.ClusterSlots = func(ctx context.Context) ([]redis.ClusterSlot, error) {
					table, err := slots(ctx).Result()
					if err == nil && bad.Add(-1) >= 0 {
						spoil(table)
					}
					return table, err
				}
			})
			w.mine = newStore(t, rdb)
			w.mine.sharded.pace.shortest = quick.shortest
			w.hints = hintsOf(w.mine)
			keys := w.keysOf(t, cluster.Masters()...)
			w.listen(t, keys...)
			bad.Store(3)
			for _, node := range w.nodes {
				if err := node.ClientKillByFilter(t.Context(), "type", "pubsub").Err(); err != nil {
					t.Fatal(err)
				}
			}
			w.awaitGap(t, keys...)
			// The first right one is in use when the second one is asked for.
			suite.Eventually(t, "the wrong tables are used up", func() bool { return bad.Load() <= -2 })
			for _, key := range keys {
				again, stop := w.mine.Listen(key)
				defer stop()
				awaitReady(t, again)
				w.handOver(t, key)
			}
		})
	}
}
