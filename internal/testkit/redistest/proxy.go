package redistest

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Proxy is a TCP proxy in front of a Redis server, or of several, with faults
// that a test switches at will. It knows commands only in the form that clients
// send them in, arrays of strings; anything else fails the test.
//
// In front of several servers it listens once for each, and is one network: a
// partition separates the client from all of them, and a rule waits for the next
// command to any.
//
// All its methods are safe for concurrent use, from any goroutine.
type Proxy struct {
	tb      testing.TB
	fronts  []*front // one for each server
	running sync.WaitGroup
	gate    gate
	rules   rules
	delay   atomic.Int64 // in nanoseconds

	mu       sync.Mutex
	refusing bool
	links    map[*link]struct{}
	commands map[string]int
}

// NewProxy starts a proxy for the server at target, a host:port, on a free
// loopback port, and for others on ports of their own. The cleanup of tb closes
// it with all of its connections.
func NewProxy(tb testing.TB, target string, others ...string) *Proxy {
	tb.Helper()
	p := &Proxy{
		tb:       tb,
		links:    make(map[*link]struct{}),
		commands: make(map[string]int),
	}
	for _, target := range append([]string{target}, others...) {
		p.fronts = append(p.fronts, newFront(p, target))
	}
	for _, f := range p.fronts {
		p.running.Go(f.accept)
	}
	tb.Cleanup(func() {
		for _, f := range p.fronts {
			_ = f.listener.Close()
		}
		p.Refuse(true)
		p.running.Wait()
	})
	return p
}

// Addr is the host:port that clients of the first server have to connect to.
func (p *Proxy) Addr() string {
	return p.fronts[0].addr()
}

// Routes returns the host:port that clients of each server have to connect to. The
// map belongs to the caller.
func (p *Proxy) Routes() map[string]string {
	routes := make(map[string]string, len(p.fronts))
	for _, f := range p.fronts {
		routes[f.target] = f.addr()
	}
	return routes
}

// Dial connects to the server at addr through the proxy, and past it if addr is
// no server of the proxy's. It is the Dialer of clients that learn addresses
// from the servers: of a cluster, or from sentinels.
func (p *Proxy) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	for _, f := range p.fronts {
		if f.target == addr {
			addr = f.addr()
			break
		}
	}
	dialer := net.Dialer{Timeout: readyTimeout}
	return dialer.DialContext(ctx, network, addr)
}

// Client returns a client that reaches the first server through the proxy. The
// cleanup of tb closes it. Its options are the defaults of go-redis, retries
// included, apart from what configure changes.
func (p *Proxy) Client(tb testing.TB, configure ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	return newClient(tb, redis.Options{Addr: p.Addr()}, anybodysAdministrator(), configure)
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
	for _, f := range p.fronts {
		f.settle()
	}
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

// Commands returns how often each command was on its way to a server, by its
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
