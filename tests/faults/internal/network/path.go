package network

import (
	"slices"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A Path is that of one client process to all servers. What its methods do to the
// connections they do to those that there are, and to new ones, until Calm.
//
// They are safe for concurrent use. Up can fail the run, and must be called on its
// goroutine.
type Path struct {
	// Commands is the proxy that knows commands: partitions, lost replies and
	// late commands are made with it.
	Commands *redistest.Proxy
	// Routes says where the process has to dial instead of each server. It must
	// not be changed.
	Routes map[string]string

	links   []*link
	servers []string // where each line leads
}

// To returns the part of the path that leads to these servers. It has no Commands: those
// are of the whole path.
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

// newPath makes a path to these servers, that the cleanup of tb ends.
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

// Delay makes all bytes of each direction so much late, more or less by the
// jitter, without changing their order. It ends what an earlier Delay did.
func (p *Path) Delay(latency, jitter time.Duration) {
	p.both(latencySlot, &toxics.LatencyToxic{Latency: latency.Milliseconds(), Jitter: jitter.Milliseconds()})
}

// Throttle lets so many bytes of each connection and direction through in a
// second, in steps of 1000. It ends what an earlier Throttle did.
func (p *Path) Throttle(bytesPerSecond int) {
	p.both(bandwidthSlot, &toxics.BandwidthToxic{Rate: int64(max(1, bytesPerSecond/1000))})
}

// Slice tears what is sent into packets of a few bytes, with a pause after each.
func (p *Path) Slice() {
	p.both(slicerSlot, &toxics.SlicerToxic{AverageSize: 8, SizeVariation: 7, Delay: 100})
}

// HalfOpen swallows the bytes of one direction, while those of the other pass:
// with Upstream no command arrives, with Downstream no reply.
func (p *Path) HalfOpen(direction Direction) {
	p.set(direction, breakSlot, &toxics.TimeoutToxic{})
}

// Reset breaks each connection at its next reply, in the way in which a crashed
// host does (RST): the command was executed.
func (p *Path) Reset() {
	p.set(Downstream, breakSlot, &toxics.ResetToxic{})
}

// Down closes all connections and refuses new ones, as a host without the server
// does.
func (p *Path) Down() {
	for _, l := range p.links {
		l.down()
	}
}

// Up ends Down.
func (p *Path) Up() {
	for _, l := range p.links {
		l.up()
	}
}

// Restore ends all that is wrong with bytes, and closes the connections of which
// bytes are missing. It does not end Down.
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
