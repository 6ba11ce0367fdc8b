package storetest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// ClusterProxies are proxies, one in front of each node of a cluster. They count the tokens that
// are sent to each node.
type ClusterProxies struct {
	Cluster *redistest.Cluster
	Proxies map[string]*redistest.Proxy // by the address of the node

	mu   sync.Mutex
	seen map[string]map[string]int // by node: how often each token was sent to the node
}

// NewClusterProxies starts the proxies. They end with the test.
func NewClusterProxies(t *testing.T, cluster *redistest.Cluster) *ClusterProxies {
	t.Helper()
	p := &ClusterProxies{Cluster: cluster, Proxies: make(map[string]*redistest.Proxy), seen: make(map[string]map[string]int)}
	for _, node := range cluster.Nodes() {
		p.Proxies[node.Addr()] = redistest.NewProxy(t, node.Addr())
		p.seen[node.Addr()] = make(map[string]int)
		p.Proxies[node.Addr()].HoldCommand(func(command []string) bool {
			p.see(node.Addr(), command)
			return false
		})
	}
	return p
}

// see counts the token of a command to a node.
func (p *ClusterProxies) see(node string, command []string) {
	position := 2 // in SET key token
	switch command[0] {
	case "SET":
	case "EVALSHA", "EVAL":
		_, _ = fmt.Sscan(command[2], &position) // the number of keys
		position += 3
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[node][command[position]]++
}

// Sent returns how often a token was sent to a node. It is safe for concurrent use.
func (p *ClusterProxies) Sent(node *redistest.Server, token string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[node.Addr()][token]
}

// To returns the proxy of a node.
func (p *ClusterProxies) To(node *redistest.Server) *redistest.Proxy { return p.Proxies[node.Addr()] }

// Client returns a client that connects through the proxies. It loads the slots again only after
// a redirection.
func (p *ClusterProxies) Client(t *testing.T, configure ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	t.Helper()
	return p.Cluster.Client(t, append(configure, func(o *redis.ClusterOptions) {
		o.ClusterStateReloadInterval = time.Hour
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			// go-redis removes a loopback host from the addresses of ClusterSlots.
			if strings.HasPrefix(addr, ":") {
				addr = "127.0.0.1" + addr
			}
			return new(net.Dialer).DialContext(ctx, network, p.Proxies[addr].Addr())
		}
	})...)
}

// TagsOf returns a hash tag for each master: the master has all keys with the tag.
func TagsOf(t *testing.T, cluster *redistest.Cluster) map[*redistest.Server]string {
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
