package fault

import (
	"slices"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/network"
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
		{"crash", "have crashed", 0, 1, crashEmpty},
		{"stand-still", "are paused", 1, 3, pauseServers},
		{"are-slow", "are slow", 1, 2, delay(10, 40)},
		{"are-late", "are late", 1, 2, delay(75, 150)},
		{"are-refused", "are refused", 0.5, 2, refuseAll},
		{"are-cut", "are cut off, again and again", 0.3, 1, flapConnections},
		{"are-reset", "are reset", 0.5, 1.5, impair(allPaths, (*network.Path).Reset)},
		{"get-no-commands", "get no commands", 0.5, 2, halfOpenAll(network.Upstream)},
		{"send-no-replies", "send no replies", 0.5, 2, halfOpenAll(network.Downstream)},
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
		Fault{Name: "quorum-servers-crash-and-keep-data", Args: appendOnly(), Inject: onMinority("have crashed", 0, 1, crashWithData)},
		Fault{Name: "quorum-servers-crash-in-turn", Inject: crashInTurn},
		Fault{Name: "quorum-servers-storm", Inject: injectMinorityStorm},
		Fault{Name: "quorum-majority-crashes", Inject: repeat(2, restartMajority)},
		Fault{Name: "quorum-majority-stands-still", Inject: onMajority("is paused", pauseServers)},
		Fault{Name: "quorum-majority-is-refused", Inject: onMajority("is refused", refuseAll)},
		Fault{Name: "quorum-majority-gets-no-commands", Inject: onMajority("gets no commands", halfOpenAll(network.Upstream))},
		Fault{Name: "quorum-majority-sends-no-replies", Inject: onMajority("sends no replies", halfOpenAll(network.Downstream))},
	)
	for i := range faults {
		faults[i].On = []Deployment{OnQuorum}
	}
	return faults
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
		crashEmpty, pauseServers, delay(10, 40), delay(75, 150), refuseAll, flapConnections,
		halfOpenAll(network.Upstream), halfOpenAll(network.Downstream), configure("maxmemory", "1"), makeReplica, flushScripts,
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
