package redistest

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Proxy is a TCP proxy in front of one or several Redis servers, with faults that a test
// controls. It accepts commands only as arrays of strings, as clients send them; anything
// else fails the test.
//
// In front of several servers it listens once for each server, and is one network: a
// partition affects all servers, and a rule applies to the next command to any server.
//
// All its methods are safe for concurrent use, from any goroutine.
type Proxy struct {
	tb        testing.TB
	impairs   bool        // bytes, see Path
	endpoints []*endpoint // one for each server
	running   sync.WaitGroup
	partition partition
	rules     rules
	delay     atomic.Int64 // in nanoseconds

	mu       sync.Mutex
	refusing bool
	links    map[*link]struct{}
	commands map[string]int
}

// NewProxy starts a proxy for the server at target, a host:port, on a free loopback port. It
// has one more port for each of the others. The cleanup of tb closes the proxy and all of its
// connections.
func NewProxy(tb testing.TB, target string, others ...string) *Proxy {
	tb.Helper()
	return newProxy(tb, false, append([]string{target}, others...))
}

func newProxy(tb testing.TB, impairs bool, targets []string) *Proxy {
	tb.Helper()
	p := &Proxy{
		tb:       tb,
		impairs:  impairs,
		links:    make(map[*link]struct{}),
		commands: make(map[string]int),
	}
	for _, target := range targets {
		p.endpoints = append(p.endpoints, newEndpoint(p, target))
	}
	tb.Cleanup(func() {
		for _, e := range p.endpoints {
			e.down()
		}
		p.Refuse(true)
		p.running.Wait()
	})
	return p
}

// Addr returns the host:port for clients of the first server.
func (p *Proxy) Addr() string {
	return p.endpoints[0].addr
}

// Routes returns the host:port for clients of each server, by the address of the server. The
// map belongs to the caller.
func (p *Proxy) Routes() map[string]string {
	routes := make(map[string]string, len(p.endpoints))
	for _, e := range p.endpoints {
		routes[e.target] = e.addr
	}
	return routes
}

// Dial connects to the server at addr through the proxy, or directly if addr is not a
// server of the proxy. It is the Dialer of clients that learn addresses from a cluster or
// from sentinels.
func (p *Proxy) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	for _, e := range p.endpoints {
		if e.target == addr {
			addr = e.addr
			break
		}
	}
	dialer := net.Dialer{Timeout: readyTimeout}
	return dialer.DialContext(ctx, network, addr)
}

// Client returns a client that reaches the first server through the proxy. The cleanup of tb
// closes the client. Its options are the defaults of go-redis, including retries, except those
// that configure changes.
func (p *Proxy) Client(tb testing.TB, configure ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	return newClient(tb, redis.Options{Addr: p.Addr()}, anybodysAdministrator(), configure)
}

// Partition stops the network in both directions. The proxy holds all data, does not forward the
// end of a connection, and accepts new connections without connecting to the server. From the
// return of Partition until Heal or HealDropped, the proxy forwards no byte.
func (p *Proxy) Partition() {
	p.partition.begin()
}

// Heal ends a partition and forwards the held data, as a slow network does. Commands arrive even
// if their client has closed the connection meanwhile.
func (p *Proxy) Heal() {
	p.partition.end()
}

// HealDropped ends a partition and closes all current connections. Their held data is lost.
func (p *Proxy) HealDropped() {
	// In this order: a closed link forwards nothing after the partition.
	p.Cut()
	p.partition.end()
}

// Cut closes all connections that clients dialed before the call. Data that is held or under way
// is lost. New connections work.
func (p *Proxy) Cut() {
	for _, e := range p.endpoints {
		e.drainBacklog()
	}
	p.mu.Lock()
	links := slices.Collect(maps.Keys(p.links))
	p.mu.Unlock()
	for _, l := range links {
		l.close()
	}
}

// Refuse makes the servers appear to be down if on is true: it cuts current connections, and new
// connections are closed at once. If on is false, it ends that.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	p.refusing = on
	p.mu.Unlock()
	if on {
		p.Cut()
	}
}

// Commands returns how often clients sent each command, by its name in upper case. It includes
// HELLO and CLIENT at the beginning of a connection, and commands that HoldCommand holds. It does
// not include commands that a partition holds. The map belongs to the caller.
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

func (p *Proxy) count(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commands[name]++
}

// Delay delays each command and each reply by at least d, from the time at which it arrives at
// the proxy. Delay(0) ends that for all later arrivals. The order on a connection does not
// change. Commands that arrive together are delayed together: the delay is latency, not a small
// bandwidth. A new connection is not delayed, but its first command is. A batch of CutBatch is
// not delayed.
//
// Delay is safe for concurrent use.
func (p *Proxy) Delay(d time.Duration) {
	p.delay.Store(int64(d))
}

// awaitDelay waits until the delay of a message that arrived at this time is over. It returns
// false if ctx ends before.
func (p *Proxy) awaitDelay(ctx context.Context, arrived time.Time) bool {
	d := time.Until(arrived.Add(time.Duration(p.delay.Load())))
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// timestampedConn records the time of its last read. A buffered reader that reads one message
// at a time reads from the connection only if the message is incomplete. So the time is that at
// which the end of the message arrived.
type timestampedConn struct {
	net.Conn
	at time.Time // of the last read
}

// Read implements net.Conn.
func (c *timestampedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.at = time.Now()
	return n, err
}
