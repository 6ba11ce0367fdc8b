package redistest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Await returns when the running nodes are a healthy cluster: each slot has a running
// master, the other nodes are replicas with all of its data, and all nodes know that, have
// links to each other, and accept commands.
//
// A restarted master accepts commands after two seconds. A node that was elected less than
// two seconds ago, and is a replica again, is not healthy: it could not be elected again.
func (c *Cluster) Await() {
	c.tb.Helper()
	c.await("a healthy cluster", func(ctx context.Context) error {
		_, err := c.healthy(ctx)
		return err
	})
	c.setNodeTimeout(idleTimeout) // also of restarted nodes
}

// errFailed is that a node has marked a master with slots as failed.
var errFailed = errors.New("a master is marked as failed")

// await is await of the running nodes. If nodes do not run, the node timeout is short
// meanwhile: with a long one the others could not agree that these nodes have failed. It
// becomes short, too, when a running master is marked as failed: the others remove the
// mark after the master has answered for twice the node timeout.
func (c *Cluster) await(what string, ask func(context.Context) error) {
	c.tb.Helper()
	isFast := false
	shorten := func() {
		c.setNodeTimeout(nodeTimeout)
		isFast = true
	}
	if len(c.nodes.up()) < len(c.nodes) {
		shorten()
	}
	c.nodes.await(c.tb, what, func(ctx context.Context) error {
		err := ask(ctx)
		if !isFast && errors.Is(err, errFailed) {
			shorten()
		}
		return err
	})
	if isFast {
		c.setNodeTimeout(idleTimeout)
	}
}

// healthy returns the table that all nodes agree on, or an error that names what is not
// healthy.
func (c *Cluster) healthy(ctx context.Context) (slotTable, error) {
	table, err := c.table(ctx)
	if err != nil {
		return nil, err
	}
	up := c.nodes.up()
	if gap := table.gap(); gap != slotCount {
		return nil, fmt.Errorf("no node serves slot %d: %v", gap, table)
	}
	for _, r := range table {
		if up.at(r.Nodes[0].Addr) == nil {
			return nil, fmt.Errorf("slot %d is served by %s, which does not run", r.Start, r.Nodes[0].Addr)
		}
	}
	for _, node := range up {
		if err := c.healthyNode(ctx, node, table); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// healthyNode returns an error unless a running node is healthy.
func (c *Cluster) healthyNode(ctx context.Context, node *Server, table slotTable) error {
	info, err := node.admin().ClusterInfo(ctx).Result()
	if err != nil {
		return fmt.Errorf("CLUSTER INFO of %s: %w", node.Addr(), err)
	}
	if !strings.Contains(info, "cluster_slots_fail:0\r\n") {
		return fmt.Errorf("%s: %w: %q", node.Addr(), errFailed, info)
	}
	if !strings.Contains(info, "cluster_state:ok\r\n") {
		return fmt.Errorf("%s accepts no commands: %q", node.Addr(), info)
	}
	if err := c.linked(ctx, node); err != nil {
		return err
	}
	if table.serves(node) {
		return nil
	}
	master := c.partner(node)
	if !table.serves(master) {
		return errors.New("no node of the shard of " + node.Addr() + " is a master")
	}
	if !strings.Contains(table.String(), " "+node.Addr()) {
		return fmt.Errorf("%s is not known to be a replica yet: %v", node.Addr(), table)
	}
	if time.Since(c.elected[node]) < staleVotes {
		return fmt.Errorf("%s could win an election with the votes of its previous one", node.Addr())
	}
	return follows(ctx, node, master)
}

// linked returns an error unless the node has a link to each other running node. Without
// links the votes for a replica arrive four seconds late.
func (c *Cluster) linked(ctx context.Context, node *Server) error {
	nodes, err := node.admin().ClusterNodes(ctx).Result()
	if err != nil {
		return fmt.Errorf("CLUSTER NODES of %s: %w", node.Addr(), err)
	}
	up := c.nodes.up()
	for line := range strings.Lines(nodes) {
		// id, host:port@bus, flags, master, ping, pong, epoch, link, slots
		fields := strings.Fields(line)
		addr, _, _ := strings.Cut(fields[1], "@")
		if up.at(addr) != nil && fields[7] != "connected" {
			return fmt.Errorf("%s has no link to %s yet", node.Addr(), addr)
		}
	}
	return nil
}
