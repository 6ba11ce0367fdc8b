package fault

import (
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// networkFaults returns the faults of the network between servers and clients.
func networkFaults() []Fault {
	fault := func(name, what string, least, most float64, inject injector) Fault {
		return Fault{Name: name, Inject: injectTwice(what, least, most, inject)}
	}
	return on(Deployments(),
		fault("connections-are-cut", "connections are cut", 0, 0.1, cutConnections),
		fault("connections-are-reset", "connections are reset", 0.3, 1, impair(allPaths, (*redistest.Path).Reset)),
		fault("connections-are-refused", "connections are refused", 0.3, 2, refuse(somePaths)),
		fault("subscriptions-are-cut", "subscriptions are cut", 0, 0.1, killSubscriptions),
		fault("one-is-partitioned", "a process is partitioned", 1.2, 2, partition(onePath, (*redistest.Proxy).Heal)),
		fault("one-is-partitioned-and-all-is-lost", "a process is partitioned", 1.2, 2, partition(onePath, (*redistest.Proxy).HealDropped)),
		fault("all-are-partitioned", "all processes are partitioned", 0.5, 2, partition(allPaths, (*redistest.Proxy).Heal)),
		fault("all-are-partitioned-and-all-is-lost", "all processes are partitioned", 0.5, 2, partition(allPaths, (*redistest.Proxy).HealDropped)),
		fault("commands-are-swallowed", "commands are swallowed", 0.5, 2, halfOpen(somePaths, redistest.ToServer)),
		fault("replies-are-swallowed", "replies are swallowed", 0.5, 2, halfOpen(somePaths, redistest.ToClient)),
		fault("network-is-slow", "the network is slow", 1, 2, delaySome),
		fault("network-is-throttled", "the network is throttled", 1, 2, throttleAll),
		fault("packets-are-tiny", "packets are tiny", 1, 2, impair(allPaths, (*redistest.Path).Slice)))
}

// choosePaths chooses the paths of some processes.
type choosePaths func(s *System) []*redistest.Path

// onePath chooses the path of a random process.
func onePath(s *System) []*redistest.Path { return []*redistest.Path{s.path(s.someProcess())} }

// path returns the path of a process. If s is partial, it returns only the links to the
// servers of s.
func (s *System) path(process int) *redistest.Path {
	path := s.Network.Path(process)
	if s.isPartial {
		var servers []string
		for _, voter := range s.Quorum {
			servers = append(servers, voter.Addr())
		}
		path = path.To(servers...)
	}
	return path
}

// allPaths returns the paths of all processes.
func allPaths(s *System) []*redistest.Path {
	var paths []*redistest.Path
	for _, process := range s.Workload.Processes() {
		paths = append(paths, s.path(process))
	}
	return paths
}

// somePaths returns one path or all.
func somePaths(s *System) []*redistest.Path {
	return []choosePaths{onePath, allPaths}[s.Random.IntN(2)](s)
}

// impair returns an injector that changes how bytes pass on the paths.
func impair(whose choosePaths, do func(*redistest.Path)) injector {
	return func(s *System) func() {
		paths := whose(s)
		for _, path := range paths {
			do(path)
		}
		return func() {
			for _, path := range paths {
				path.Restore()
			}
		}
	}
}

// halfOpen returns an injector that drops all bytes of one direction.
func halfOpen(whose choosePaths, direction redistest.Direction) injector {
	return impair(whose, func(p *redistest.Path) { p.HalfOpen(direction) })
}

// delaySome makes each command take 20 to 80 ms longer on average, and sometimes longer than
// the command timeout: on both ways, or only on the way back.
func delaySome(s *System) func() {
	latency := time.Duration(10+s.Random.IntN(31)) * time.Millisecond
	if s.Random.IntN(2) == 0 {
		return impair(somePaths, func(p *redistest.Path) { p.Slow(latency, latency/2) })(s)
	}
	return impair(somePaths, func(p *redistest.Path) { p.SlowReplies(2*latency, latency/2) })(s)
}

// throttleAll lets a few commands in a second pass, in tiny packets.
func throttleAll(s *System) func() {
	rate := 2000 + s.Random.IntN(8000)
	return impair(allPaths, func(p *redistest.Path) {
		p.Throttle(rate)
		p.Slice()
	})(s)
}

// refuse returns an injector that makes servers refuse all connections on the paths.
func refuse(whose choosePaths) injector {
	return func(s *System) func() {
		paths := whose(s)
		for _, path := range paths {
			path.Down()
		}
		return func() {
			for _, path := range paths {
				path.Up()
			}
		}
	}
}

// partition returns an injector that holds all bytes until heal.
func partition(whose choosePaths, heal func(*redistest.Proxy)) injector {
	return func(s *System) func() {
		paths := whose(s)
		for _, path := range paths {
			path.Partition()
		}
		return func() {
			for _, path := range paths {
				heal(path.Proxy)
			}
		}
	}
}

// cutConnections closes connections of some processes, several times.
func cutConnections(s *System) func() {
	return func() {
		for range 10 {
			for _, path := range somePaths(s) {
				path.Cut()
			}
			s.runFor(0.02, 0.3)
		}
	}
}

// killSubscriptions closes all subscriptions, several times.
func killSubscriptions(s *System) func() {
	return func() {
		for range 10 {
			s.command("CLIENT", "KILL", "TYPE", "pubsub")
			s.runFor(0.02, 0.3)
		}
	}
}
