package redistest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Await returns when the nodes that run are a healthy cluster again: each slot
// has a master that runs, the other nodes are replicas with all of its data,
// all of them know that, are linked to each other, and take commands.
//
// A master that was restarted takes commands after two seconds. A node that was
// elected less than two seconds ago, and is a replica again, is not healthy: it
// could not be elected once more.
func (c *Cluster) Await() {
	c.tb.Helper()
	c.await("a healthy cluster", func(ctx context.Context) error {
		_, err := c.healthy(ctx)
		return err
	})
	c.mayBeSilent(calm) // also those that were started meanwhile
}

// errFailed says that some node takes a master of slots for failed.
var errFailed = errors.New("a master is taken for failed")

// await waits as a group does for what the nodes that run are to come to. Until then
// they do not put up with those that do not run: they could not agree about them. Nor do
// they with any as soon as a master that runs is taken for failed: they forget that when
// it has answered for twice as long as a node may be silent.
func (c *Cluster) await(what string, ask func(context.Context) error) {
	c.tb.Helper()
	hasty := false
	hasten := func() {
		c.mayBeSilent(nodeTimeout)
		hasty = true
	}
	if len(c.nodes.up()) < len(c.nodes) {
		hasten()
	}
	c.nodes.await(c.tb, what, func(ctx context.Context) error {
		err := ask(ctx)
		if !hasty && errors.Is(err, errFailed) {
			hasten()
		}
		return err
	})
	if hasty {
		c.mayBeSilent(calm)
	}
}

// healthy returns the table that all nodes agree on, or what is not healthy.
func (c *Cluster) healthy(ctx context.Context) (slotTable, error) {
	table, err := c.table(ctx)
	if err != nil {
		return nil, err
	}
	up := c.nodes.up()
	if gap := table.gap(); gap != slotCount {
		return nil, fmt.Errorf("nobody serves slot %d: %v", gap, table)
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

// healthyNode returns what is not healthy with a node that runs.
func (c *Cluster) healthyNode(ctx context.Context, node *Server, table slotTable) error {
	info, err := node.admin().ClusterInfo(ctx).Result()
	if err != nil {
		return fmt.Errorf("CLUSTER INFO of %s: %w", node.Addr(), err)
	}
	if !strings.Contains(info, "cluster_slots_fail:0\r\n") {
		return fmt.Errorf("%s: %w: %q", node.Addr(), errFailed, info)
	}
	if !strings.Contains(info, "cluster_state:ok\r\n") {
		return fmt.Errorf("%s takes no commands: %q", node.Addr(), info)
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
		return fmt.Errorf("%s could win an election with the votes of its last one", node.Addr())
	}
	return follows(ctx, node, master)
}

// linked returns an error unless the node has a link to each other one that runs.
// The votes for a replica that has none yet come four seconds later.
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
