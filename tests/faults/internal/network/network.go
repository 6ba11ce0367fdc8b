// Package network is the network between the clients of a run and its servers. For each
// client process it has two proxies in front of each server. One handles bytes: latency,
// bandwidth, half-open connections. The other handles commands, such as a lost reply to one
// command: it is a redistest.Proxy.
//
//	process -> link (bytes) -> redistest.Proxy (commands) -> server
//
// The toxics of toxiproxy change how bytes pass. The connections are our own: those of
// toxiproxy leak goroutines when one side closes while bytes are under way, and block for
// good if toxics change at that time, as a campaign does all the time.
package network

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A Network has a path from each client process to the servers. It is safe for concurrent
// use. Path can fail the run, so it must be called on the run's goroutine.
type Network struct {
	tb      testing.TB
	servers []string

	mu    sync.Mutex
	paths map[int]*Path
}

// Start starts a network to servers. The cleanup of tb ends it.
func Start(tb testing.TB, servers ...string) *Network {
	tb.Helper()
	// Toxics write to the global logger.
	zerolog.SetGlobalLevel(zerolog.Disabled)
	return &Network{tb: tb, servers: slices.Clone(servers), paths: map[int]*Path{}}
}

// Path returns the path of a process, and creates it first if necessary. The path stays
// after the process has died, since its bytes may still arrive.
func (n *Network) Path(process int) *Path {
	n.tb.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	path := n.paths[process]
	if path == nil {
		path = newPath(n.tb, n.servers)
		n.paths[process] = path
	}
	return path
}

// A Path connects one client process to all servers. Its methods apply to existing and new
// connections, until Restore.
//
// They are safe for concurrent use. Up can fail the run, so it must be called on its
// goroutine.
type Path struct {
	// Commands is the proxy for commands: it makes partitions, and loses or delays single
	// commands.
	Commands *redistest.Proxy
	// Routes has the address to dial instead of each server. It must not be changed.
	Routes map[string]string

	links   []*link
	servers []string // the server of each link
}

// To returns the part of the path to some servers. The part has no Commands.
func (p *Path) To(servers ...string) *Path {
	part := &Path{Routes: map[string]string{}}
	for i, l := range p.links {
		if slices.Contains(servers, p.servers[i]) {
			part.links, part.servers = append(part.links, l), append(part.servers, p.servers[i])
			part.Routes[p.servers[i]] = p.Routes[p.servers[i]]
		}
	}
	return part
}

// newPath creates a path to servers. The cleanup of tb ends the path.
func newPath(tb testing.TB, servers []string) *Path {
	tb.Helper()
	p := &Path{
		Commands: redistest.NewProxy(tb, servers[0], servers[1:]...),
		Routes:   map[string]string{},
	}
	fronts := p.Commands.Routes()
	for _, server := range servers {
		l := newLink(tb, fronts[server])
		p.links, p.servers = append(p.links, l), append(p.servers, server)
		p.Routes[server] = l.addr
	}
	return p
}

// Delay delays all bytes of both directions by the latency, plus or minus the jitter,
// without changing their order. It replaces an earlier Delay or DelayReplies.
func (p *Path) Delay(latency, jitter time.Duration) {
	p.both(latencySlot, delayed(latency, jitter))
}

// DelayReplies is Delay for the bytes from the servers alone. A client that counts a lease
// from the arrival of the reply is wrong by all of this latency.
func (p *Path) DelayReplies(latency, jitter time.Duration) {
	p.set(Downstream, latencySlot, delayed(latency, jitter))
}

func delayed(latency, jitter time.Duration) toxics.Toxic {
	return &toxics.LatencyToxic{Latency: latency.Milliseconds(), Jitter: jitter.Milliseconds()}
}

// Throttle limits the bytes per second of each connection and direction, in steps of 1000.
// It replaces an earlier Throttle.
func (p *Path) Throttle(bytesPerSecond int) {
	p.both(bandwidthSlot, &toxics.BandwidthToxic{Rate: int64(max(1, bytesPerSecond/1000))})
}

// Slice splits what is sent into packets of a few bytes, with a pause after each.
func (p *Path) Slice() {
	p.both(slicerSlot, &toxics.SlicerToxic{AverageSize: 8, SizeVariation: 7, Delay: 100})
}

// HalfOpen drops the bytes of one direction: of commands (Upstream) or of replies
// (Downstream).
func (p *Path) HalfOpen(direction Direction) {
	p.set(direction, breakSlot, &toxics.TimeoutToxic{})
}

// Reset resets each connection (RST) at its next reply, after the server has executed the
// command.
func (p *Path) Reset() {
	p.set(Downstream, breakSlot, &toxics.ResetToxic{})
}

// Down closes all connections and refuses new ones, like a host without the server.
func (p *Path) Down() {
	for _, l := range p.links {
		l.down()
	}
}

// Up accepts connections again.
func (p *Path) Up() {
	for _, l := range p.links {
		l.up()
	}
}

// Restore removes all impairments of bytes, and closes the connections that have lost
// bytes. It does not end Down.
func (p *Path) Restore() {
	for _, l := range p.links {
		l.restore()
	}
}

func (p *Path) both(place toxicSlot, toxic toxics.Toxic) {
	p.set(stream.Upstream, place, toxic)
	p.set(stream.Downstream, place, toxic)
}

func (p *Path) set(direction Direction, place toxicSlot, toxic toxics.Toxic) {
	for _, l := range p.links {
		l.set(direction, place, toxic)
	}
}
