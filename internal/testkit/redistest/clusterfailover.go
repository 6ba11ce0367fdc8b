package redistest

import (
	"context"
	"fmt"
	"time"
)

// staleVotes is how long the votes of one election count in the next election of the same
// node. The node wins that election alone, and no other node accepts the result
// (redis/redis#8752). This matters if a node becomes a replica again within this time.
const staleVotes = 2 * nodeTimeout

// Failover kills the master, and returns its replica when the replica is the master of a
// healthy cluster. Writes that the replica had not received are lost: RefuseReplicas
// ensures that. Restart restarts the killed node as a replica.
func (c *Cluster) Failover(master *Server) *Server {
	c.tb.Helper()
	c.mustServe(master)
	master.Kill()
	return c.AwaitFailover(master)
}

// Switch makes the master and its replica change roles, without a loss of data or a kill,
// as before the upgrade of a node. It returns the new master,
// when the cluster is healthy again.
func (c *Cluster) Switch(master *Server) *Server {
	c.tb.Helper()
	c.mustServe(master)
	// A master does not vote twice for the same shard within twice the node timeout.
	c.setNodeTimeout(nodeTimeout)
	c.partner(master).mustRun("CLUSTER", "FAILOVER")
	elected := c.AwaitFailover(master)
	c.setNodeTimeout(idleTimeout)
	return elected
}

// Takeover makes the replica take over from a master that may be running, without an
// election. Writes that the replica had not received, as after RefuseReplicas, are lost. It returns the new master, when the cluster is
// healthy again with the old one as a replica.
func (c *Cluster) Takeover(master *Server) *Server {
	c.tb.Helper()
	c.mustServe(master)
	c.partner(master).mustRun("CLUSTER", "FAILOVER", "TAKEOVER")
	return c.awaitReplaced(master)
}

// AwaitFailover returns the new master of the shard when this master, which the test has
// killed or paused, was replaced, and the running nodes are a healthy cluster. Until then
// the node timeout is short.
func (c *Cluster) AwaitFailover(master *Server) *Server {
	c.tb.Helper()
	elected := c.awaitReplaced(master)
	c.elected[elected] = time.Now()
	return elected
}

func (c *Cluster) awaitReplaced(master *Server) *Server {
	c.tb.Helper()
	c.await("a failover", func(ctx context.Context) error {
		return c.replaced(ctx, master)
	})
	return c.partner(master)
}

// replaced returns an error unless the cluster is healthy with another master of the
// shard.
func (c *Cluster) replaced(ctx context.Context, master *Server) error {
	table, err := c.healthy(ctx)
	if err != nil {
		return err
	}
	if replica := c.partner(master); table.serves(master) || !table.serves(replica) {
		return fmt.Errorf("%s has not taken over from %s: %v", replica.Addr(), master.Addr(), table)
	}
	return nil
}

// mustServe fails the test if the node is not a master.
func (c *Cluster) mustServe(node *Server) {
	c.tb.Helper()
	if !c.agreed().serves(node) {
		c.tb.Fatalf("fail over from %s: it is not a master", node.Addr())
	}
}
