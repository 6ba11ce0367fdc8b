package quorum

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

const (
	// prefix is the prefix of keys in Redis.
	prefix              = "reqlock:"
	nodeCount, majority = 5, 3
)

// A node is a server that votes, behind a proxy.
type node struct {
	server *redistest.Server
	proxy  *redistest.Proxy
	direct *redis.Client // connects to the server without the proxy
}

// nodes are servers that vote.
type nodes []*node

func startNodes(t *testing.T) nodes {
	t.Helper()
	var all nodes
	for range nodeCount {
		server := redistest.Start(t)
		all = append(all, &node{server, redistest.NewProxy(t, server.Addr()), server.Client(t)})
	}
	return all
}

func (n nodes) clients(t *testing.T) (clients []redis.UniversalClient) {
	t.Helper()
	for _, one := range n {
		clients = append(clients, one.proxy.Client(t))
	}
	return clients
}

// votes returns how many nodes have this value for the key; "" is no value. All nodes
// must answer.
func (n nodes) votes(t *testing.T, key, value string) (votes int) {
	t.Helper()
	for _, one := range n {
		got, err := one.direct.Get(t.Context(), prefix+key).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Errorf("GET: %v", err) // from any goroutine
		}
		if got == value {
			votes++
		}
	}
	return votes
}

// set sets the key on these nodes if it is free, as clients of the classic recipe do. It
// returns on how many nodes.
func (n nodes) set(t *testing.T, key, value string, ttl time.Duration) (set int) {
	t.Helper()
	for _, one := range n {
		err := one.direct.SetArgs(t.Context(), prefix+key, value, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
		if err == nil {
			set++
		} else if !errors.Is(err, redis.Nil) {
			t.Fatalf("SET NX: %v", err)
		}
	}
	return set
}

func (n nodes) drop(t *testing.T, key string) {
	t.Helper()
	for _, one := range n {
		if err := one.direct.Del(t.Context(), prefix+key).Err(); err != nil {
			t.Fatalf("DEL: %v", err)
		}
	}
}

// A fault is what happens to a node.
type fault struct {
	name   string
	inject func(*node)
	repair func(*node)
	// isTransient is true if the node works again without repair, after its quarantine.
	isTransient bool
	// restarts is true if the fault or its repair restarts the node.
	restarts bool
}

// oneWayDelay is the delay of commands to a delayed node, and of replies from it. Both
// together exceed the timeout of a command: the node runs the command, and its reply
// comes too late.
var oneWayDelay = ttl * 3 / 16

var (
	killed = fault{
		name:     "killed",
		inject:   func(n *node) { n.server.Kill() },
		repair:   func(n *node) { n.server.Restart() },
		restarts: true,
	}
	stopped = fault{
		name:   "stopped",
		inject: func(n *node) { n.server.Pause() },
		repair: func(n *node) { n.server.Resume() },
	}
	delayed = fault{
		name:   "delayed",
		inject: func(n *node) { n.proxy.Delay(oneWayDelay) },
		repair: func(n *node) { n.proxy.Delay(0) },
	}
	cut = fault{ // what was in flight arrives at the repair
		name:   "cut",
		inject: func(n *node) { n.proxy.Partition() },
		repair: func(n *node) { n.proxy.Heal() },
	}
	restarted = fault{
		name:        "restarted empty",
		inject:      func(n *node) { n.server.Restart() },
		repair:      func(*node) {},
		isTransient: true,
		restarts:    true,
	}
)

func faults() []fault { return []fault{killed, stopped, delayed, cut, restarted} }
