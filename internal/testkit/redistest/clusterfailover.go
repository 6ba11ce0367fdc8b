package redistest

import (
	"context"
	"fmt"
	"time"
)

// staleVotes is how long the votes of one election count in the next one of the
// same node, which it wins at once and alone: nobody else accepts that
// (redis/redis#8752). It matters where a node becomes a replica again so soon.
const staleVotes = 2 * nodeTimeout

// Failover kills the master and returns its replica, when that has taken over
// and the other nodes are a healthy cluster with it. What the master had not
// yet sent to the replica is lost: RefuseReplicas makes sure of it. Restart
// brings the killed node back, as a replica.
func (c *Cluster) Failover(master *Server) *Server {
	c.tb.Helper()
	c.mustServe(master)
	master.Kill()
	return c.AwaitFailover(master)
}

// Switch makes the master and its replica change roles, which loses nothing and
// kills nobody, as before the upgrade of a node. It returns the new master,
// when the cluster is healthy again.
func (c *Cluster) Switch(master *Server) *Server {
	c.tb.Helper()
	c.mustServe(master)
	// Nobody votes for a replica twice in a time that the timeout says.
	c.mayBeSilent(nodeTimeout)
	c.partner(master).tell("CLUSTER", "FAILOVER")
	elected := c.AwaitFailover(master)
	c.mayBeSilent(calm)
	return elected
}

// Takeover makes the replica take over from a master that may well be alive,
// without asking anybody. What the master had not yet sent to the replica, as
// after RefuseReplicas, is lost. It returns the new master, when the cluster is
// healthy again with the old one as a replica.
func (c *Cluster) Takeover(master *Server) *Server {
	c.tb.Helper()
	c.mustServe(master)
	c.partner(master).tell("CLUSTER", "FAILOVER", "TAKEOVER")
	return c.awaitReplaced(master)
}

// AwaitFailover returns the new master of the shard when this master, which the
// test has killed or paused, was replaced and the nodes that run are a healthy
// cluster. Until then the other nodes do not put up with one that is silent.
func (c *Cluster) AwaitFailover(master *Server) *Server {
	c.tb.Helper()
	elected := c.awaitReplaced(master)
	c.elected[elected] = time.Now()
	return elected
}

// awaitReplaced does what AwaitFailover does, where nobody is elected.
func (c *Cluster) awaitReplaced(master *Server) *Server {
	c.tb.Helper()
	c.await("a failover", func(ctx context.Context) error {
		return c.replaced(ctx, master)
	})
	return c.partner(master)
}

// replaced returns an error unless the cluster is healthy with another master
// in the place of this one.
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
