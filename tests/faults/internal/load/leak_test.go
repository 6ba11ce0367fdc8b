package load

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A state counts everything that must not have grown after a run.
type state struct {
	goroutines  int
	clientConns int64 // to the services
	serverConns int64 // of the services
	redisConns  int   // of the instances and of the test
	channels    int
	clients     string // CLIENT LIST
}

func (s state) String() string {
	return fmt.Sprintf("%d goroutines, %d and %d connections of clients and servers, %d of Redis, %d channels",
		s.goroutines, s.clientConns, s.serverConns, s.redisConns, s.channels)
}

// more describes what there is more of than before, or returns "".
func (s state) more(before state) string {
	if s.goroutines <= before.goroutines && s.clientConns <= before.clientConns && s.serverConns <= before.serverConns &&
		s.redisConns <= before.redisConns && s.channels <= before.channels {
		return ""
	}
	var clients string
	if s.redisConns > before.redisConns {
		clients = "\n" + s.clients
	}
	return fmt.Sprintf("%v; there may be %v%s", s, before, clients)
}

// A leakCheck reads the state of a test.
type leakCheck struct {
	admin     *redis.Client // the only client that belongs to no instance
	client    *httpClient
	instances []*instance
}

func (c *leakCheck) take(t *testing.T) state {
	t.Helper()
	now := state{goroutines: runtime.NumGoroutine(), clientConns: c.client.conns.Load()}
	for _, s := range c.instances {
		now.serverConns += s.conns.Load()
	}
	clients, err := c.admin.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	now.clients = clients
	now.redisConns = strings.Count(clients, "\n")
	plain := c.admin.PubSubChannels(t.Context(), "*").Val()
	sharded := c.admin.PubSubShardChannels(t.Context(), "*").Val()
	now.channels = len(plain) + len(sharded)
	return now
}

// pools returns how many connections to Redis the instances may keep. A client has a second
// pool for pipelines.
func (c *leakCheck) pools() (n int) {
	for _, s := range c.instances {
		o := s.redis.Options()
		n += o.PoolSize + cmp.Or(o.PipelinePoolSize, redis.DefaultPipelinePoolSize)
	}
	return n
}

// leftoverKeys returns the keys that must be deleted: all except fencing counters and
// records. Kept counts those.
func (c *leakCheck) leftoverKeys(t *testing.T) (names []string, kept map[string]int) {
	t.Helper()
	keys, err := c.admin.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	kept = map[string]int{}
	for _, key := range keys {
		switch {
		case strings.HasSuffix(key, "}:f"):
			kept["counters"]++
		case strings.HasSuffix(key, "}:r"):
			kept["records"]++
		default:
			names = append(names, key)
		}
	}
	return names, kept
}

// An httpClient sends all requests, each on its own connection.
type httpClient struct {
	http.Client
	conns atomic.Int64
}

func newHTTPClient(t *testing.T, n int) *httpClient {
	t.Helper()
	b := &httpClient{}
	transport := &http.Transport{
		MaxIdleConns: n, MaxIdleConnsPerHost: n,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			b.conns.Add(1)
			return &countedConn{Conn: conn, closed: sync.OnceFunc(func() { b.conns.Add(-1) })}, nil
		},
	}
	b.Transport = transport
	t.Cleanup(transport.CloseIdleConnections)
	return b
}

// A countedConn calls a function when it is closed.
type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}
