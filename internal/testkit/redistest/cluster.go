package redistest

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// clusterShards is the number of masters. Each has one replica.
	clusterShards = 3

	// nodeTimeout is how long a node may be silent while the test waits for a
	// failover: a new master is at work two to three seconds later. It holds for
	// those that start, too, because they serve the sooner the shorter it is.
	nodeTimeout = time.Second

	// slotCount is the number of slots of every Redis Cluster.
	slotCount = 16384
)

// Cluster is a Redis Cluster of six redis-server processes that belong to one
// test: three shards, each a master and a replica. The two change roles, but
// nodes do not change shards.
//
// It is calm: on a busy machine, where a node may be silent for seconds, no
// replica takes over from a master that is well. One that was killed or paused
// is replaced as soon as the test waits for that.
//
// Its methods must be called on the goroutine of the test, as
// testing.TB.FailNow demands. None of them sleeps: they ask the nodes until all
// that run (are neither killed nor paused) say the same, and fail the test with
// the logs if that takes half a minute.
type Cluster struct {
	tb      testing.TB
	nodes   group                 // node i and node i+clusterShards are a shard
	elected map[*Server]time.Time // at the latest, see staleVotes
}

// StartCluster runs a cluster on free loopback ports, without persistence, and
// returns when it takes commands: after a bit more than two seconds, because a
// master that was just started takes none before. The args are added to the
// command line of every node. A --cluster-node-timeout among them is overwritten
// as soon as the nodes run: the cluster sets its own.
//
// The processes end as those of [Start] do, and a test is skipped or fails
// where redis-server is not installed as with Start. It takes Redis 7.0 or
// newer.
func StartCluster(tb testing.TB, args ...string) *Cluster {
	tb.Helper()
	program := Program(tb)
	args = slices.Concat(replicated([]string{
		"--cluster-announce-ip", "127.0.0.1",
		"--cluster-node-timeout", strconv.FormatInt(nodeTimeout.Milliseconds(), 10),
		// A replica may take over however long ago it has heard from its
		// master, and stays with its shard.
		"--cluster-replica-validity-factor", "0",
		"--cluster-allow-replica-migration", "no",
	}), args)
	c := &Cluster{tb: tb, elected: make(map[*Server]time.Time)}
	for range 2 * clusterShards {
		node := newServer(tb, program, args)
		node.role = clusterNode
		c.nodes = append(c.nodes, node)
	}
	c.nodes.start(tb)
	c.form()
	c.Await()
	return c
}

// mayBeSilent sets for how long a node may be silent, at all that run.
func (c *Cluster) mayBeSilent(period time.Duration) {
	c.tb.Helper()
	for _, node := range c.nodes.up() {
		node.tell("CONFIG", "SET", "cluster-node-timeout", period.Milliseconds())
	}
}

// form makes a cluster of nodes that know nothing yet.
func (c *Cluster) form() {
	c.tb.Helper()
	masters, replicas := c.nodes[:clusterShards], c.nodes[clusterShards:]
	for i, node := range c.nodes {
		// All nodes begin with the same epoch. They would sort that out, but
		// with a change of the configuration in the midst of the test.
		node.tell("CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	for i, master := range masters {
		first, next := i*slotCount/clusterShards, (i+1)*slotCount/clusterShards
		master.tell("CLUSTER", "ADDSLOTSRANGE", first, next-1)
	}
	for i, node := range c.nodes {
		// Everybody meets everybody: to hear of each other takes longer.
		for _, other := range c.nodes[:i] {
			node.tell("CLUSTER", "MEET", "127.0.0.1", other.port, other.busPort)
		}
	}
	for i, replica := range replicas {
		id := masters[i].id()
		c.nodes.await(c.tb, "nodes that know each other", func(ctx context.Context) error {
			return replica.admin().ClusterReplicate(ctx, id).Err()
		})
	}
}

// id is the name of a node in its cluster.
func (s *Server) id() string {
	s.tb.Helper()
	id, err := s.admin().ClusterMyID(s.tb.Context()).Result()
	if err != nil {
		s.tb.Fatalf("CLUSTER MYID of %s: %v", s.Addr(), err)
	}
	return id
}

// Nodes returns all six nodes, whether they run or not. The slice belongs to
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
