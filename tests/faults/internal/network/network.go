package network

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// A Network is all paths from the client processes to the servers.
//
// Its methods are those of a Path, for each that there is: a path that is laid
// later is calm. They are safe for concurrent use, but those that can fail the
// run (Path and Up) must be called on the goroutine of the run, as
// testing.TB.FailNow demands.
type Network struct {
	tb      testing.TB
	servers []string

	mu    sync.Mutex
	paths map[int]*Path
}

// Start lays a network to the servers at these addresses. The cleanup of tb ends
// it with all that is on it.
func Start(tb testing.TB, servers ...string) *Network {
	tb.Helper()
	if len(servers) == 0 {
		tb.Fatal("start a network: it leads to no server")
	}
	// Toxics tell each step to the logger of the whole process, if it listens.
	zerolog.SetGlobalLevel(zerolog.Disabled)
	return &Network{tb: tb, servers: slices.Clone(servers), paths: map[int]*Path{}}
}

// Path returns the path of a process, which is laid when it is first asked for. It
// stays when the process has died: what that has sent may still arrive.
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

// Paths returns all paths, in the order of the processes' numbers.
func (n *Network) Paths() []*Path {
	n.mu.Lock()
	defer n.mu.Unlock()
	var paths []*Path
	for _, process := range slices.Sorted(maps.Keys(n.paths)) {
		paths = append(paths, n.paths[process])
	}
	return paths
}

// Delay makes all bytes late.
func (n *Network) Delay(latency, jitter time.Duration) {
	n.each(func(p *Path) { p.Delay(latency, jitter) })
}

// Throttle lets so many bytes through in a second.
func (n *Network) Throttle(bytesPerSecond int) {
	n.each(func(p *Path) { p.Throttle(bytesPerSecond) })
}

// Slice tears what is sent into tiny packets.
func (n *Network) Slice() { n.each((*Path).Slice) }

// HalfOpen swallows the bytes of one direction.
func (n *Network) HalfOpen(direction Direction) {
	n.each(func(p *Path) { p.HalfOpen(direction) })
}

// Reset breaks each connection at its next reply.
func (n *Network) Reset() { n.each((*Path).Reset) }

// Down refuses connections.
func (n *Network) Down() { n.each((*Path).Down) }

// Up ends Down.
func (n *Network) Up() { n.tb.Helper(); n.each((*Path).Up) }

// Restore ends all that is wrong with bytes.
func (n *Network) Restore() { n.each((*Path).Restore) }

func (n *Network) each(do func(*Path)) {
	n.tb.Helper()
	for _, path := range n.Paths() {
		do(path)
	}
}
