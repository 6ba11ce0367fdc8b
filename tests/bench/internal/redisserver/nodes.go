package redisserver

import (
	"context"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// nodeTimeout is the default of Redis, in milliseconds: how long a node of a cluster may be
// silent.
const nodeTimeout = "15000"

// Nodes are independent servers, or the masters of a Redis Cluster. Their methods are safe for
// concurrent use.
type Nodes struct {
	nodes []*Server
}

// StartNodes starts that many servers like Start.
func StartNodes(tb testing.TB, count int) *Nodes {
	tb.Helper()
	n := new(Nodes)
	for range count {
		n.nodes = append(n.nodes, Start(tb))
	}
	return n
}

// StartCluster starts a Redis Cluster of that many masters without replicas. It returns when all
// accept commands, after two to three seconds.
func StartCluster(tb testing.TB, masters int) *Nodes {
	tb.Helper()
	n := newNodes(tb, redistest.StartMasters(tb, masters))
	for _, node := range n.nodes {
		if err := node.Client.ConfigSet(tb.Context(), "cluster-node-timeout", nodeTimeout).Err(); err != nil {
			tb.Fatalf("set the node timeout of %s: %v", node.Addr, err)
		}
	}
	return n
}

func newNodes(tb testing.TB, servers []*redistest.Server) *Nodes {
	tb.Helper()
	n := new(Nodes)
	for _, s := range servers {
		n.nodes = append(n.nodes, newServer(tb, s))
	}
	return n
}

// First returns the first nodes, which it shares with n.
func (n *Nodes) First(count int) *Nodes { return &Nodes{n.nodes[:count]} }

// AwaitAge returns when all nodes have run for longer than age, in whole seconds by their
// own count.
func (n *Nodes) AwaitAge(ctx context.Context, age time.Duration) error {
	for _, node := range n.nodes {
		for {
			info, err := node.info(ctx, "server")
			if err != nil {
				return err
			}
			left := age + time.Second - secondsOf(info["uptime_in_seconds"])
			if left <= 0 {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(min(left, agePoll)):
			}
		}
	}
	return nil
}

// agePoll is how often the age of a node is checked.
const agePoll = 100 * time.Millisecond

// Addrs returns the addresses of all nodes.
func (n *Nodes) Addrs() (addrs []string) {
	for _, node := range n.nodes {
		addrs = append(addrs, node.Addr)
	}
	return addrs
}

// Used returns the sum over all nodes, including traffic among them.
func (n *Nodes) Used(ctx context.Context) (Usage, error) {
	sum := Usage{Calls: make(map[string]int64)}
	for _, node := range n.nodes {
		used, err := node.Used(ctx)
		if err != nil {
			return Usage{}, err
		}
		sum.add(used)
	}
	return sum, nil
}

// Clear deletes all keys of all nodes.
func (n *Nodes) Clear(ctx context.Context) error {
	for _, node := range n.nodes {
		if err := node.Clear(ctx); err != nil {
			return err
		}
	}
	return nil
}
