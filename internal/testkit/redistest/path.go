package redistest

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// A Direction is a direction of bytes.
type Direction int

// The directions.
const (
	ToServer Direction = iota // of commands
	ToClient                  // of replies
)

// An impairment is how the bytes of one direction pass.
type impairment struct {
	latency, jitter time.Duration
	bytesPerSecond  int  // 0 for no limit
	slices          bool // into tiny packets
	drops           bool
	resets          bool // the connection, instead of the next bytes
}

// A Path is the network between the clients of a Proxy and its servers, or some of them. Its
// methods apply to existing and new connections, until Restore. They are safe for concurrent
// use, except Up, which can fail the test.
type Path struct {
	*Proxy

	part []*endpoint
}

// NewPath starts a proxy that can also impair bytes, like a bad network.
func NewPath(tb testing.TB, target string, others ...string) *Path {
	tb.Helper()
	p := newProxy(tb, true, append([]string{target}, others...))
	return &Path{p, p.endpoints}
}

// To returns the part of the path to some servers. The methods of its Proxy apply to all.
func (p *Path) To(servers ...string) *Path {
	p.tb.Helper()
	part := slices.DeleteFunc(slices.Clone(p.part), func(e *endpoint) bool { return !slices.Contains(servers, e.target) })
	if len(part) != len(servers) {
		p.tb.Fatalf("the path leads to %d of %v", len(part), servers)
	}
	return &Path{p.Proxy, part}
}

// Slow delays all bytes of both directions by the latency, plus or minus the jitter, without
// changing their order. It replaces an earlier Slow or SlowReplies.
func (p *Path) Slow(latency, jitter time.Duration) {
	for _, d := range []Direction{ToServer, ToClient} {
		p.impair(d, func(i *impairment) { i.latency, i.jitter = latency, jitter })
	}
}

// SlowReplies is Slow for the bytes from the servers alone. A client that counts a lease
// from the arrival of the reply is wrong by all of this latency.
func (p *Path) SlowReplies(latency, jitter time.Duration) {
	p.impair(ToClient, func(i *impairment) { i.latency, i.jitter = latency, jitter })
}

// Throttle limits the bytes per second of each connection and direction.
func (p *Path) Throttle(bytesPerSecond int) {
	for _, d := range []Direction{ToServer, ToClient} {
		p.impair(d, func(i *impairment) { i.bytesPerSecond = bytesPerSecond })
	}
}

// Slice splits what clients receive into packets of a few bytes, with a pause after each.
func (p *Path) Slice() { p.impair(ToClient, func(i *impairment) { i.slices = true }) }

// HalfOpen drops the bytes of one direction.
func (p *Path) HalfOpen(d Direction) { p.impair(d, func(i *impairment) { i.drops = true }) }

// Reset resets each connection (RST) at its next reply, after the server has executed the
// command.
func (p *Path) Reset() { p.impair(ToClient, func(i *impairment) { i.resets = true }) }

// Down closes all connections and refuses new ones, like a host without the server.
func (p *Path) Down() {
	for _, e := range p.part {
		e.down()
	}
}

// Up accepts connections again.
func (p *Path) Up() {
	p.tb.Helper()
	for _, e := range p.part {
		e.up()
	}
}

// Restore removes all impairments, and closes connections that may have lost bytes. It does not
// end Down.
func (p *Path) Restore() {
	for _, e := range p.part {
		if e.impaired(ToServer).drops || e.impaired(ToClient).drops || e.impaired(ToClient).resets {
			e.cut() // first: no byte may follow a dropped one
		}
	}
	for _, d := range []Direction{ToServer, ToClient} {
		p.impair(d, func(i *impairment) { *i = impairment{} })
	}
}

func (p *Path) impair(d Direction, change func(*impairment)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.part {
		change(&e.impairments[d])
	}
}

// A Network has a path from each client process to the servers. It is safe for concurrent use.
type Network struct {
	tb      testing.TB
	servers []string

	mu    sync.Mutex
	paths map[int]*Path
}

// NewNetwork starts a network to servers. The cleanup of tb ends it.
func NewNetwork(tb testing.TB, servers ...string) *Network {
	return &Network{tb: tb, servers: servers, paths: map[int]*Path{}}
}

// Path returns the path of a process, and creates it first if necessary, on the goroutine of the
// test. The path stays after the process has died, since its bytes may still arrive.
func (n *Network) Path(process int) *Path {
	n.tb.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.paths[process] == nil {
		n.paths[process] = NewPath(n.tb, n.servers[0], n.servers[1:]...)
	}
	return n.paths[process]
}
