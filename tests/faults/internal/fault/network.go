package fault

import (
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/network"
)

// networkFaults are what happens between the servers and the clients.
func networkFaults() []Fault {
	faults := []Fault{
		{Name: "connections-are-cut", Play: lasting("connections are cut", 0, 0.1, cutting)},
		{Name: "connections-are-reset", Play: lasting("connections are reset", 0.3, 1, poisoned(all, (*network.Path).Reset))},
		{Name: "connections-are-refused", Play: lasting("connections are refused", 0.3, 2, refusing)},
		{Name: "subscriptions-are-cut", Play: lasting("subscriptions are cut", 0, 0.1, deafening)},
		{Name: "one-is-partitioned", Play: lasting("a process is partitioned", 1.2, 2, partitioned(one, deliver))},
		{Name: "one-is-partitioned-and-all-is-lost", Play: lasting("a process is partitioned", 1.2, 2, partitioned(one, lose))},
		{Name: "all-are-partitioned", Play: lasting("all processes are partitioned", 0.5, 2, partitioned(all, deliver))},
		{Name: "all-are-partitioned-and-all-is-lost", Play: lasting("all processes are partitioned", 0.5, 2, partitioned(all, lose))},
		{Name: "commands-are-swallowed", Play: lasting("commands are swallowed", 0.5, 2, halfOpen(network.Upstream))},
		{Name: "replies-are-swallowed", Play: lasting("replies are swallowed", 0.5, 2, halfOpen(network.Downstream))},
		{Name: "network-is-slow", Play: lasting("the network is slow", 1, 2, slow)},
		{Name: "network-is-thin", Play: lasting("the network is thin", 1, 2, thin)},
		{Name: "packets-are-tiny", Play: lasting("packets are tiny", 1, 2, poisoned(all, (*network.Path).Slice))},
	}
	for i := range faults {
		faults[i].On = everywhere()
	}
	return faults
}

// who returns the paths of some of the processes.
type who func(s *Scene) []*network.Path

// one is a process at random.
func one(s *Scene) []*network.Path { return []*network.Path{s.path(s.someProcess())} }

// path returns that of a process: of a few servers of a quorum, its part to them.
func (s *Scene) path(process int) *network.Path {
	path := s.Network.Path(process)
	if s.few {
		var servers []string
		for _, voter := range s.Quorum {
			servers = append(servers, voter.Addr())
		}
		return path.To(servers...)
	}
	return path
}

// all is all processes.
func all(s *Scene) []*network.Path {
	var paths []*network.Path
	for _, process := range s.Crew.Processes() {
		paths = append(paths, s.path(process))
	}
	return paths
}

// some is one of them or all.
func some(s *Scene) []*network.Path { return []who{one, all}[s.Random.IntN(2)](s) }

// poisoned returns a strike that does something to what passes on these paths.
func poisoned(whose who, do func(*network.Path)) strike {
	return func(s *Scene) func() {
		paths := whose(s)
		for _, path := range paths {
			do(path)
		}
		return func() {
			for _, path := range paths {
				path.Calm()
			}
		}
	}
}

// halfOpen swallows what goes in one direction.
func halfOpen(direction network.Direction) strike {
	return poisoned(some, func(p *network.Path) { p.HalfOpen(direction) })
}

// slow makes each answer to some 20 to 80 ms late, and now and then more, which is
// too late.
func slow(s *Scene) func() {
	latency := time.Duration(10+s.Random.IntN(31)) * time.Millisecond
	return poisoned(some, func(p *network.Path) { p.Delay(latency, latency/2) })(s)
}

// thin lets a few commands a second through, in tiny packets.
func thin(s *Scene) func() {
	rate := 2000 + s.Random.IntN(8000)
	return poisoned(all, func(p *network.Path) {
		p.Throttle(rate)
		p.Slice()
	})(s)
}

// refusing takes the servers away from some.
func refusing(s *Scene) func() {
	paths := some(s)
	for _, path := range paths {
		path.Down()
	}
	return func() {
		for _, path := range paths {
			path.Up()
		}
	}
}

// deliver heals a partition: all that was held arrives, late.
func deliver(p *redistest.Proxy) { p.Heal() }

// lose heals a partition: all that was held is lost.
func lose(p *redistest.Proxy) { p.HealDropped() }

// partitioned returns a strike that lets nothing through, and heals it in this way.
func partitioned(whose who, heal func(*redistest.Proxy)) strike {
	return func(s *Scene) func() {
		paths := whose(s)
		for _, path := range paths {
			path.Commands.Partition()
		}
		return func() {
			for _, path := range paths {
				heal(path.Commands)
			}
		}
	}
}

// cutting closes all connections of some, again and again.
func cutting(s *Scene) func() {
	return func() {
		for range 10 {
			for _, path := range some(s) {
				path.Commands.Cut()
			}
			s.linger(0.02, 0.3)
		}
	}
}

// deafening closes all subscriptions, again and again.
func deafening(s *Scene) func() {
	return func() {
		for range 10 {
			s.order("CLIENT", "KILL", "TYPE", "pubsub")
			s.linger(0.02, 0.3)
		}
	}
}
