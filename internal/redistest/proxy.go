package redistest

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Proxy is a TCP proxy in front of a Redis server, with faults that a test
// switches at will. It knows commands only in the form that clients send them
// in, arrays of strings; anything else fails the test.
//
// All its methods are safe for concurrent use, from any goroutine.
type Proxy struct {
	tb       testing.TB
	target   string
	listener net.Listener
	running  sync.WaitGroup
	deaf     chan struct{} // closed when no connections are accepted any more
	gate     gate
	rules    rules

	mu       sync.Mutex
	refusing bool
	links    map[*link]struct{}
	markers  map[string]chan struct{} // see settle
	commands map[string]int
}

// NewProxy starts a proxy for the server at target, a host:port, on a free
// loopback port. The cleanup of tb closes it with all of its connections.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("start proxy: %v", err)
	}
	p := &Proxy{
		tb:       tb,
		target:   target,
		listener: listener,
		deaf:     make(chan struct{}),
		links:    make(map[*link]struct{}),
		markers:  make(map[string]chan struct{}),
		commands: make(map[string]int),
	}
	p.running.Go(p.accept)
	tb.Cleanup(func() {
		_ = listener.Close()
		p.Refuse(true)
		p.running.Wait()
	})
	return p
}

// Addr is the host:port that clients have to connect to.
func (p *Proxy) Addr() string {
	return p.listener.Addr().String()
}

// Client returns a client that reaches the server through the proxy. The
// cleanup of tb closes it. Its options are the defaults of go-redis, retries
// included, apart from what configure changes.
func (p *Proxy) Client(tb testing.TB, configure ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	return newClient(tb, redis.Options{Addr: p.Addr()}, configure)
}

// Partition stops everything in both directions: what is under way is held,
// connections are neither closed nor seen to be closed by the other side, and
// new ones are accepted but lead nowhere. When Partition has returned nothing
// passes until Heal or HealDropped.
func (p *Proxy) Partition() {
	p.gate.shut()
}

// Heal ends a partition and delivers what was held: the network was slow.
// Commands arrive even if their client has given up and closed meanwhile.
func (p *Proxy) Heal() {
	p.gate.open()
}

// HealDropped ends a partition and closes all connections that it caught. What
// was held on them is lost, and will not arrive later.
func (p *Proxy) HealDropped() {
	// In this order: a closed link can not use the open gate.
	p.Cut()
	p.gate.open()
}

// Cut closes all current connections, with all that is under way or held on
// them. New connections work. Current is each that its client could dial
// before the call.
func (p *Proxy) Cut() {
	p.settle()
	p.mu.Lock()
	links := slices.Collect(maps.Keys(p.links))
	p.mu.Unlock()
	for _, l := range links {
		l.close()
	}
}

// Refuse switches between a server that is down (on: current connections are
// cut, new ones closed at once) and one that is up.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	p.refusing = on
	p.mu.Unlock()
	if on {
		p.Cut()
	}
}

// Commands returns how often each command was on its way to the server, by its
// name in upper case. It counts all that clients send, so also the HELLO and
// CLIENT with which they begin a connection. A command held by HoldCommand
// counts, one behind a partition does not yet. The map belongs to the caller.
func (p *Proxy) Commands() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.commands)
}

// ResetCommands makes Commands count from zero again.
func (p *Proxy) ResetCommands() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.commands)
}

// count notes a command on its way to the server.
func (p *Proxy) count(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commands[name]++
}
