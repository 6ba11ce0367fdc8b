package quorum

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

const (
	// prefix is what stands before the keys in Redis.
	prefix = "reqlock:"
	// size is how many nodes there are, and majority how many of them decide.
	size, majority = 5, 3
)

// A node is one of the servers that vote, with the network before it.
type node struct {
	server *redistest.Server
	proxy  *redistest.Proxy
	raw    *redis.Client // past the proxy
}

// nodes are all servers that vote.
type nodes []*node

// startNodes starts servers that end with the test.
func startNodes(t *testing.T) nodes {
	t.Helper()
	var all nodes
	for range size {
		server := redistest.Start(t)
		all = append(all, &node{server, redistest.NewProxy(t, server.Addr()), server.Client(t)})
	}
	return all
}

// clients returns those of one process.
func (n nodes) clients(t *testing.T) (clients []redis.UniversalClient) {
	t.Helper()
	for _, one := range n {
		clients = append(clients, one.proxy.Client(t))
	}
	return clients
}

// votes returns how many nodes, of those that must all answer, have this value for
// the key; "" is none.
func (n nodes) votes(t *testing.T, key, value string) (votes int) {
	t.Helper()
	for _, one := range n {
		got, err := one.raw.Get(t.Context(), prefix+key).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Errorf("GET: %v", err) // from any goroutine
		}
		if got == value {
			votes++
		}
	}
	return votes
}

// set sets the key on these nodes, as clients of the classic recipe do.
func (n nodes) set(t *testing.T, key, value string, ttl time.Duration) (set int) {
	t.Helper()
	for _, one := range n {
		err := one.raw.SetArgs(t.Context(), prefix+key, value, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
		if err == nil {
			set++
		} else if !errors.Is(err, redis.Nil) {
			t.Fatalf("SET NX: %v", err)
		}
	}
	return set
}

// drop deletes the key on these nodes.
func (n nodes) drop(t *testing.T, key string) {
	t.Helper()
	for _, one := range n {
		if err := one.raw.Del(t.Context(), prefix+key).Err(); err != nil {
			t.Fatalf("DEL: %v", err)
		}
	}
}
