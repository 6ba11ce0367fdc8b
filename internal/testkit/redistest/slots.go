package redistest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// slotTable maps slots to nodes. The first node of each range is the master, the others are
// its replicas.
type slotTable []redis.ClusterSlot

// table returns the table of all running nodes, or an error if they do not agree.
func (c *Cluster) table(ctx context.Context) (slotTable, error) {
	var table slotTable
	for i, node := range c.nodes.up() {
		slots, err := node.admin().ClusterSlots(ctx).Result() //nolint:staticcheck // clients of a cluster use it, too
		if err != nil {
			return nil, fmt.Errorf("CLUSTER SLOTS of %s: %w", node.Addr(), err)
		}
		slices.SortFunc(slots, func(a, b redis.ClusterSlot) int { return cmp.Compare(a.Start, b.Start) })
		if i > 0 && table.String() != slotTable(slots).String() {
			return nil, fmt.Errorf("nodes do not agree: %v and %v of %s", table, slotTable(slots), node.Addr())
		}
		table = slots
	}
	return table, nil
}

func (t slotTable) String() string {
	var text strings.Builder
	for _, r := range t {
		fmt.Fprintf(&text, "[%d-%d", r.Start, r.End)
		for _, node := range r.Nodes {
			fmt.Fprintf(&text, " %s", node.Addr)
		}
		text.WriteString("]")
	}
	return text.String()
}

// owner returns the address of the master of the slot, or "".
func (t slotTable) owner(slot int) string {
	for _, r := range t {
		if r.Start <= slot && slot <= r.End && len(r.Nodes) > 0 {
			return r.Nodes[0].Addr
		}
	}
	return ""
}

func (t slotTable) gap() int {
	next := 0
	for _, r := range t {
		if r.Start != next || len(r.Nodes) == 0 {
			break
		}
		next = r.End + 1
	}
	return next
}

func (t slotTable) serves(node *Server) bool {
	return slices.ContainsFunc(t, func(r redis.ClusterSlot) bool {
		return len(r.Nodes) > 0 && r.Nodes[0].Addr == node.Addr()
	})
}

func (c *Cluster) agreed() slotTable {
	c.tb.Helper()
	var table slotTable
	c.await("nodes that agree", func(ctx context.Context) (err error) {
		table, err = c.table(ctx)
		return err
	})
	return table
}

// Slot returns the slot of the key.
func (c *Cluster) Slot(key string) int {
	c.tb.Helper()
	up := c.nodes.up()
	if len(up) == 0 {
		c.tb.Fatalf("slot of a key: no node of the cluster is running")
	}
	slot, err := up[0].admin().ClusterKeySlot(c.tb.Context(), key).Result()
	if err != nil {
		c.tb.Fatalf("CLUSTER KEYSLOT of %s: %v", up[0].Addr(), err)
	}
	return int(slot)
}

// Masters returns the nodes that serve slots, in the order of Nodes. A killed or paused
// node remains a master until its replica takes over.
func (c *Cluster) Masters() []*Server {
	c.tb.Helper()
	table := c.agreed()
	var masters []*Server
	for _, node := range c.nodes {
		if table.serves(node) {
			masters = append(masters, node)
		}
	}
	return masters
}

// MasterOf returns the node that serves the slot of the key, as Masters does.
func (c *Cluster) MasterOf(key string) *Server {
	c.tb.Helper()
	slot := c.Slot(key)
	master := c.nodes.at(c.agreed().owner(slot))
	if master == nil {
		c.tb.Fatalf("no node serves the slot %d", slot)
	}
	return master
}

// ReplicaOf returns the other node of the shard of this master, even if it does not run.
func (c *Cluster) ReplicaOf(master *Server) *Server {
	c.tb.Helper()
	return c.partner(master)
}

func (c *Cluster) partner(node *Server) *Server {
	c.tb.Helper()
	i := slices.Index(c.nodes, node)
	if i < 0 {
		c.tb.Fatalf("%s is not a node of this cluster", node.Addr())
	}
	return c.nodes[(i+clusterShards)%len(c.nodes)]
}
