package redisstore

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// roads are the ways of one process to the nodes of a cluster, each through a
// proxy.
type roads struct {
	cluster *redistest.Cluster
	proxies map[string]*redistest.Proxy // by the address of the node

	mu   sync.Mutex
	seen map[string]map[string]int // by node, how often each token was sent to it
}

// newRoads builds roads that end with the test.
func newRoads(t *testing.T, cluster *redistest.Cluster) *roads {
	t.Helper()
	r := &roads{cluster: cluster, proxies: make(map[string]*redistest.Proxy), seen: make(map[string]map[string]int)}
	for _, node := range cluster.Nodes() {
		r.proxies[node.Addr()] = redistest.NewProxy(t, node.Addr())
		r.seen[node.Addr()] = make(map[string]int)
		r.proxies[node.Addr()].HoldCommand(func(command []string) bool {
			r.see(node.Addr(), command)
			return false
		})
	}
	return r
}

// see notes the token of a command that goes to a node.
func (r *roads) see(node string, command []string) {
	position := 2 // SET key token
	switch command[0] {
	case "SET":
	case "EVALSHA", "EVAL":
		_, _ = fmt.Sscan(command[2], &position) // how many keys
		position += 3
	default:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[node][command[position]]++
}

// sent returns how often a token was sent to a node.
func (r *roads) sent(node *redistest.Server, token string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[node.Addr()][token]
}

// to returns the proxy before a node.
func (r *roads) to(node *redistest.Server) *redistest.Proxy { return r.proxies[node.Addr()] }

// client returns a client that takes the roads. By itself it never asks again
// where the slots are.
func (r *roads) client(t *testing.T, configure ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	t.Helper()
	return r.cluster.Client(t, append(configure, func(o *redis.ClusterOptions) {
		o.ClusterStateReloadInterval = time.Hour
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			// go-redis takes the host from an address of a loopback that ClusterSlots names.
			if strings.HasPrefix(addr, ":") {
				addr = "127.0.0.1" + addr
			}
			return new(net.Dialer).DialContext(ctx, network, r.proxies[addr].Addr())
		}
	})...)
}

// tagsOf returns a hash tag of each master, whose keys it has.
func tagsOf(t *testing.T, cluster *redistest.Cluster) map[*redistest.Server]string {
	t.Helper()
	tags, masters := make(map[*redistest.Server]string), cluster.Masters()
	for i := 0; len(tags) < len(masters); i++ {
		tag := fmt.Sprintf("{%d}", i)
		if master := cluster.MasterOf(tag); tags[master] == "" {
			tags[master] = tag
		}
	}
	return tags
}

// serial makes tokens that no two commands share.
type serial struct {
	mu sync.Mutex
	n  int
}

func (s *serial) token() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return fmt.Sprintf("%s:%d", me, s.n)
}

// request returns one for the key, under a token of its own.
func (s *serial) request(key string) store.Request {
	r := request(s.token())
	r.Key = key
	return r
}
