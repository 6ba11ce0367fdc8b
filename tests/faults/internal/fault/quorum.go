package fault

import (
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// Quarantine returns how long a server does not vote after its start: as long as the
// longest lease, since clients extend leases to at most two TTLs.
func Quarantine(ttl time.Duration) time.Duration { return 2 * ttl }

// quorumFaults returns the faults of some servers of a quorum. While a minority fails,
// locks are granted. While a majority fails, none is granted.
func quorumFaults() []Fault {
	var faults []Fault
	for _, few := range []struct {
		name, what  string
		least, most float64
		breaks      injector
	}{
		{"crash", "have crashed", 0, 1, crash((*redistest.Server).Restart)},
		{"stand-still", "are paused", 1, 3, pauseServers},
		{"are-slow", "are slow", 1, 2, delay(10, 40)},
		{"are-late", "are late", 1, 2, delay(75, 150)},
		{"are-refused", "are refused", 0.5, 2, refuse(allPaths)},
		{"are-cut", "are cut off, again and again", 0.3, 1, flapConnections},
		{"are-reset", "are reset", 0.5, 1.5, impair(allPaths, (*redistest.Path).Reset)},
		{"get-no-commands", "get no commands", 0.5, 2, halfOpen(allPaths, redistest.ToServer)},
		{"send-no-replies", "send no replies", 0.5, 2, halfOpen(allPaths, redistest.ToClient)},
		{"are-out-of-memory", "are out of memory", 0.5, 2, configure("maxmemory", "1")},
		{"are-replicas", "are replicas", 0.5, 2, makeReplica},
		{"lose-scripts", "lose their scripts", 0.2, 0.5, flushScripts},
		{"pause", "pause their clients", 0.1, 0.2, pauseClients},
	} {
		faults = append(faults, Fault{
			Name: "quorum-servers-" + few.name, Inject: onMinority(few.what, few.least, few.most, few.breaks),
		})
	}
	faults = append(faults,
		Fault{Name: "quorum-servers-crash-and-keep-data", Args: appendOnly(), Inject: onMinority("have crashed", 0, 1, crash((*redistest.Server).RestartFromDisk))},
		Fault{Name: "quorum-servers-crash-in-turn", Inject: crashInTurn},
		Fault{Name: "quorum-servers-storm", Inject: injectMinorityStorm},
		Fault{Name: "quorum-majority-crashes", Inject: repeat(2, restartMajority)},
		Fault{Name: "quorum-majority-stands-still", Inject: onMajority("is paused", pauseServers)},
		Fault{Name: "quorum-majority-is-refused", Inject: onMajority("is refused", refuse(allPaths))},
		Fault{Name: "quorum-majority-gets-no-commands", Inject: onMajority("gets no commands", halfOpen(allPaths, redistest.ToServer))},
		Fault{Name: "quorum-majority-sends-no-replies", Inject: onMajority("sends no replies", halfOpen(allPaths, redistest.ToClient))},
	)
	return on([]Deployment{OnQuorum}, faults...)
}

// subset returns a copy of the system that has only some random servers of the quorum.
func (s *System) subset(servers int) *System {
	few := *s
	few.isPartial = true
	few.Quorum = slices.Clone(s.Quorum)
	s.Random.Shuffle(len(few.Quorum), func(i, j int) { few.Quorum[i], few.Quorum[j] = few.Quorum[j], few.Quorum[i] })
	few.Quorum = few.Quorum[:servers]
	return &few
}

// onMinority returns an injection into one or two of five servers, twice. Locks are granted
// throughout.
func onMinority(what string, least, most float64, inject injector) func(s *System) {
	return repeat(2, func(s *System) {
		few := s.subset(1 + s.Random.IntN(2))
		s.during(validate.Minority+": servers "+what, nil, func() {
			heal := inject(few)
			s.runFor(least, most)
			s.awaitGrants()
			heal()
		})
	})
}

// onMajority returns an injection into three of five servers, none of which can vote.
func onMajority(what string, inject injector) func(s *System) {
	return repeat(2, func(s *System) {
		few := s.subset(3)
		s.during("a majority "+what, nil, func() {
			heal := inject(few)
			s.during(validate.NoGrants+": a majority "+what, nil, func() { s.runFor(1, 3) })
			heal()
		})
	})
}

// restartMajority restarts three of five servers without their data. They do not vote until
// all leases that they voted for have expired.
func restartMajority(s *System) {
	s.Helper()
	few := s.subset(3)
	s.during("a majority has crashed", nil, func() {
		for _, voter := range few.Quorum {
			voter.Kill()
		}
		s.during(validate.NoGrants+": a majority has just started", nil, func() {
			s.runFor(0, 1)
			begun := time.Now()
			few.restart()
			s.sleep(time.Until(begun.Add(Quarantine(s.TTL))))
		})
		few.awaitQuarantine()
	})
}

// crashInTurn restarts one server after the other. At most two of them are in quarantine at
// a time.
func crashInTurn(s *System) {
	s.Helper()
	s.awaitGrants()
	order := s.subset(len(s.Quorum)).Quorum
	s.during(validate.Minority+": servers crash in turn", nil, func() {
		var before *System
		for _, voter := range order {
			next := *s
			next.Quorum = []Voter{voter}
			voter.Kill()
			s.runFor(0, 0.5)
			next.restart()
			s.awaitGrants()
			if before != nil {
				before.awaitQuarantine()
			}
			before = &next
		}
		before.awaitQuarantine()
	})
	s.awaitGrants()
}

// injectMinorityStorm injects one failure after the other for about three seconds. At most
// two servers are impaired at a time.
func injectMinorityStorm(s *System) {
	injectors := []injector{
		crash((*redistest.Server).Restart), pauseServers, delay(10, 40), delay(75, 150), refuse(allPaths), flapConnections,
		halfOpen(allPaths, redistest.ToServer), halfOpen(allPaths, redistest.ToClient), configure("maxmemory", "1"), makeReplica, flushScripts,
	}
	s.awaitGrants()
	s.during(validate.Minority+": a storm", nil, func() {
		order := s.subset(len(s.Quorum)).Quorum
		var heals []func()
		for i := range 8 {
			if len(heals) == 2 {
				heals[0]()
				heals = heals[1:]
			}
			// The next server is not one of the two before it, which may still be impaired.
			few := *s
			few.isPartial, few.Quorum = true, order[i%len(order):][:1]
			heals = append(heals, injectors[s.Random.IntN(len(injectors))](&few))
			s.runFor(0.2, 0.8)
		}
		for _, heal := range heals {
			heal()
		}
	})
	s.awaitGrants()
}

// crash returns an injector that kills servers of a quorum and restarts them. They are healthy
// when they vote again: a server cannot know that its data is complete, so it is quarantined
// even if it has kept its data.
func crash(restart func(*redistest.Server)) injector {
	return func(s *System) func() {
		for _, voter := range s.Quorum {
			voter.Kill()
		}
		return func() {
			for _, voter := range s.Quorum {
				restart(voter.Server)
			}
			s.awaitQuarantine()
		}
	}
}

// restart restarts servers of a quorum without data.
func (s *System) restart() {
	s.Helper()
	for _, voter := range s.Quorum {
		voter.Restart()
	}
}

// uptime matches the uptime of a server in seconds, rounded up.
var uptime = regexp.MustCompile(`uptime_in_seconds:(\d+)`)

// awaitQuarantine returns when the servers have run for so long that they vote.
func (s *System) awaitQuarantine() {
	s.Helper()
	for _, voter := range s.Quorum {
		s.await("the end of a quarantine", func() bool {
			found := uptime.FindStringSubmatch(voter.Admin.Info(s.Context(), "server").Val())
			if found == nil {
				return false
			}
			seconds, _ := strconv.Atoi(found[1])
			return time.Duration(seconds-1)*time.Second >= Quarantine(s.TTL)
		})
	}
}

// pauseServers pauses servers of a quorum.
func pauseServers(s *System) func() {
	for _, voter := range s.Quorum {
		voter.Pause()
	}
	return func() {
		for _, voter := range s.Quorum {
			voter.Resume()
		}
	}
}

// delay returns an injector that delays all bytes of all paths by a random time between
// least and most milliseconds.
func delay(least, most int) injector {
	return func(s *System) func() {
		latency := time.Duration(least+s.Random.IntN(most-least)) * time.Millisecond
		return impair(allPaths, func(p *redistest.Path) { p.Slow(latency, latency/4) })(s)
	}
}

// flapConnections closes all connections, several times.
func flapConnections(s *System) func() {
	refuse(allPaths)(s)()
	return func() {
		for range 10 {
			refuse(allPaths)(s)()
			s.runFor(0.02, 0.1)
		}
	}
}
