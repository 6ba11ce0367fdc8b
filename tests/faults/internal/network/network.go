package network

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// A Network has a path from each client process to the servers.
//
// Its methods apply to all paths that exist; a new path is not impaired. They are safe for
// concurrent use. Path and Up can fail the run, so they must be called on its goroutine.
type Network struct {
	tb      testing.TB
	servers []string

	mu    sync.Mutex
	paths map[int]*Path
}

// Start starts a network to servers. The cleanup of tb ends it.
func Start(tb testing.TB, servers ...string) *Network {
	tb.Helper()
	if len(servers) == 0 {
		tb.Fatal("start a network: it leads to no server")
	}
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

// Paths returns all paths, ordered by process.
func (n *Network) Paths() []*Path {
	n.mu.Lock()
	defer n.mu.Unlock()
	var paths []*Path
	for _, process := range slices.Sorted(maps.Keys(n.paths)) {
		paths = append(paths, n.paths[process])
	}
	return paths
}

// Delay delays all bytes.
func (n *Network) Delay(latency, jitter time.Duration) {
	n.each(func(p *Path) { p.Delay(latency, jitter) })
}

// Throttle limits the bytes per second.
func (n *Network) Throttle(bytesPerSecond int) {
	n.each(func(p *Path) { p.Throttle(bytesPerSecond) })
}

// Slice splits what is sent into tiny packets.
func (n *Network) Slice() { n.each((*Path).Slice) }

// HalfOpen drops the bytes of one direction.
func (n *Network) HalfOpen(direction Direction) {
	n.each(func(p *Path) { p.HalfOpen(direction) })
}

// Reset resets each connection at its next reply.
func (n *Network) Reset() { n.each((*Path).Reset) }

// Down refuses connections.
func (n *Network) Down() { n.each((*Path).Down) }

// Up accepts connections again.
func (n *Network) Up() { n.tb.Helper(); n.each((*Path).Up) }

// Restore removes all impairments of bytes.
func (n *Network) Restore() { n.each((*Path).Restore) }

func (n *Network) each(do func(*Path)) {
	n.tb.Helper()
	for _, path := range n.Paths() {
		do(path)
	}
}
