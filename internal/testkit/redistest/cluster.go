package redistest

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// clusterShards is the number of masters. Each has one replica.
	clusterShards = 3

	// nodeTimeout is the node timeout while the test waits for a failover: a new master is
	// available two to three seconds later. Nodes also start with it, because a short
	// timeout makes a new cluster available sooner.
	nodeTimeout = time.Second

	// slotCount is the number of slots of every Redis Cluster.
	slotCount = 16384
)

// Cluster is a Redis Cluster of six redis-server processes that belong to one
// test: three shards, each a master and a replica. The two change roles, but
// nodes do not change shards.
//
// Its node timeout is long: on a busy machine, on which a node may not answer for seconds,
// no replica replaces a healthy master. A killed or paused master is replaced as soon as
// the test waits for that.
//
// Its methods must be called on the goroutine of the test, as
// testing.TB.FailNow demands. They poll the nodes until all running nodes, which are
// neither killed nor paused, agree. They fail the test with the logs after 30 seconds.
type Cluster struct {
	tb      testing.TB
	nodes   group                 // node i and node i+clusterShards are a shard
	elected map[*Server]time.Time // at the latest, see staleVotes

	// migrate is held during a MIGRATE. A server does nothing else meanwhile, so two servers
	// that migrate keys to each other at the same time wait until both time out.
	migrate sync.Mutex
}

// StartCluster runs a cluster on free loopback ports, without persistence, and
// returns when it accepts commands: after a bit more than two seconds, because a new
// master accepts none before. The args are added to the
// command line of every node. A --cluster-node-timeout among them is overwritten
// as soon as the nodes run: the cluster sets its own. It takes Redis 7.0 or newer.
func StartCluster(tb testing.TB, args ...string) *Cluster {
	tb.Helper()
	c := startNodes(tb, 2*clusterShards, slices.Concat(replicated([]string{
		// A replica may take over after any time without its master, and it stays in its
		// shard.
		"--cluster-replica-validity-factor", "0",
		"--cluster-allow-replica-migration", "no",
	}), args))
	masters, replicas := c.nodes[:clusterShards], c.nodes[clusterShards:]
	c.form(masters)
	for i, replica := range replicas {
		id := masters[i].id()
		c.nodes.await(tb, "nodes that know each other", func(ctx context.Context) error {
			return replica.admin().ClusterReplicate(ctx, id).Err()
		})
	}
	c.Await()
	return c
}

// StartMasters is [StartCluster] of that many masters without replicas. It returns all nodes.
func StartMasters(tb testing.TB, masters int, args ...string) []*Server {
	tb.Helper()
	c := startNodes(tb, masters, args)
	c.form(c.nodes)
	c.Await()
	return c.nodes
}

// startNodes starts nodes that are not connected yet.
func startNodes(tb testing.TB, count int, args []string) *Cluster {
	tb.Helper()
	program := Program(tb)
	args = slices.Concat([]string{
		"--cluster-announce-ip", "127.0.0.1",
		"--cluster-node-timeout", strconv.FormatInt(nodeTimeout.Milliseconds(), 10),
	}, args)
	c := &Cluster{tb: tb, elected: make(map[*Server]time.Time)}
	for range count {
		node := newServer(tb, program, args)
		node.role = clusterNode
		c.nodes = append(c.nodes, node)
	}
	c.nodes.start(tb)
	return c
}

func (c *Cluster) setNodeTimeout(period time.Duration) {
	c.tb.Helper()
	for _, node := range c.nodes.up() {
		node.mustRun("CONFIG", "SET", "cluster-node-timeout", period.Milliseconds())
	}
}

// form makes a cluster of new nodes, and divides the slots among these masters.
func (c *Cluster) form(masters group) {
	c.tb.Helper()
	for i, node := range c.nodes {
		// All nodes begin with the same epoch. They would resolve that, but with a change
		// of the configuration during the test.
		node.mustRun("CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	for i, master := range masters {
		first, next := i*slotCount/len(masters), (i+1)*slotCount/len(masters)
		master.mustRun("CLUSTER", "ADDSLOTSRANGE", first, next-1)
	}
	for i, node := range c.nodes {
		// Each node meets each other node: gossip alone takes longer.
		for _, other := range c.nodes[:i] {
			node.mustRun("CLUSTER", "MEET", "127.0.0.1", other.port, other.busPort)
		}
	}
}

func (s *Server) id() string {
	s.tb.Helper()
	id, err := s.admin().ClusterMyID(s.tb.Context()).Result()
	if err != nil {
		s.tb.Fatalf("CLUSTER MYID of %s: %v", s.Addr(), err)
	}
	return id
}

// Nodes returns all six nodes, including those that do not run. The slice belongs to
// the caller.
func (c *Cluster) Nodes() []*Server {
	return slices.Clone(c.nodes)
}

// Client returns a client of the cluster that the cleanup of tb closes. Its
// options are the defaults of go-redis, retries included, with the password of
// the nodes if --requirepass sets one, apart from what configure changes.
func (c *Cluster) Client(tb testing.TB, configure ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	tb.Helper()
	options := &redis.ClusterOptions{Password: c.nodes[0].password()}
	for _, node := range c.nodes {
		options.Addrs = append(options.Addrs, node.Addr())
	}
	for _, change := range configure {
		change(options)
	}
	return open(tb, c.nodes[0].administrator(), &options.Username, &options.Password, func() *redis.ClusterClient {
		o := *options
		return redis.NewClusterClient(&o)
	})
}
