package pubsub

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
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
	row := 0
	for name, falsify := range tables {
		row++
		prefix := fmt.Sprintf("row%d:", row)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wrongLoads atomic.Int32 // how many of the next loads return a wrong table
			c := newClusterTest(t, cluster)
			c.keyPrefix = prefix
			conns := &dialedConns{}
			rdb := cluster.Client(t, func(o *redis.ClusterOptions) {
				o.DialerRetries, o.Dialer = 1, conns.dial
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
			conns.killSubscribed(t, c)
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

// dialedConns are the connections of a client.
type dialedConns struct {
	mu        sync.Mutex
	addresses []string
}

func (d *dialedConns) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.addresses = append(d.addresses, conn.LocalAddr().String())
	}
	return conn, err
}

// killSubscribed makes the nodes close the connections with subscriptions.
func (d *dialedConns) killSubscribed(t *testing.T, c *clusterTest) {
	t.Helper()
	d.mu.Lock()
	addresses := slices.Clone(d.addresses)
	d.mu.Unlock()
	killed := int64(0)
	for _, node := range c.nodes {
		for _, address := range addresses {
			n, err := node.ClientKillByFilter(t.Context(), "addr", address, "type", "pubsub").Result()
			if err != nil {
				t.Fatal(err)
			}
			killed += n
		}
	}
	if killed == 0 {
		t.Fatal("no connection was closed")
	}
}
