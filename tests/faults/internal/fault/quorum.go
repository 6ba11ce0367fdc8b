package fault

import (
	"slices"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/network"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// Quarantine is for how long a server that has just started gives no votes where
// leases have this TTL: as long as the longest of them, which are extended by hand.
func Quarantine(ttl time.Duration) time.Duration { return 2 * ttl }

// quorumFaults are what happens to a few of the servers of a quorum. While they are a
// minority, nobody notices. While they are the majority, nobody is granted anything.
func quorumFaults() []Fault {
	var faults []Fault
	for _, few := range []struct {
		name, what  string
		least, most float64
		breaks      injector
	}{
		{"crash", "have crashed", 0, 1, crashEmpty},
		{"stand-still", "stand still", 1, 3, pauseServers},
		{"are-slow", "are slow", 1, 2, delay(10, 40)},
		{"are-late", "are late", 1, 2, delay(75, 150)},
		{"are-refused", "are refused", 0.5, 2, refuseAll},
		{"are-cut", "are cut off, again and again", 0.3, 1, flapConnections},
		{"are-reset", "are reset", 0.5, 1.5, impair(allPaths, (*network.Path).Reset)},
		{"hear-nothing", "hear nothing", 0.5, 2, halfOpenAll(network.Upstream)},
		{"say-nothing", "say nothing", 0.5, 2, halfOpenAll(network.Downstream)},
		{"want-memory", "want memory", 0.5, 2, configure("maxmemory", "1")},
		{"are-replicas", "are replicas", 0.5, 2, makeReplica},
		{"forget-scripts", "forget scripts", 0.2, 0.5, flushScripts},
		{"pause", "pause their clients", 0.1, 0.2, pauseClients},
	} {
		faults = append(faults, Fault{
			Name: "quorum-servers-" + few.name, Inject: onMinority(few.what, few.least, few.most, few.breaks),
		})
	}
	faults = append(faults,
		Fault{Name: "quorum-servers-crash-and-keep-all", Args: appendOnly(), Inject: onMinority("have crashed", 0, 1, crashWithData)},
		Fault{Name: "quorum-servers-crash-in-turn", Inject: crashInTurn},
		Fault{Name: "quorum-servers-storm", Inject: injectMinorityStorm},
		Fault{Name: "quorum-majority-crashes", Inject: repeat(2, restartMajority)},
		Fault{Name: "quorum-majority-stands-still", Inject: onMajority("stands still", pauseServers)},
		Fault{Name: "quorum-majority-is-refused", Inject: onMajority("is refused", refuseAll)},
		Fault{Name: "quorum-majority-hears-nothing", Inject: onMajority("hears nothing", halfOpenAll(network.Upstream))},
		Fault{Name: "quorum-majority-says-nothing", Inject: onMajority("says nothing", halfOpenAll(network.Downstream))},
	)
	for i := range faults {
		faults[i].On = []Deployment{OnQuorum}
	}
	return faults
}

// subset returns the scene with so many servers of the quorum alone, by chance.
func (s *System) subset(servers int) *System {
	few := *s
	few.isPartial = true
	few.Quorum = slices.Clone(s.Quorum)
	s.Random.Shuffle(len(few.Quorum), func(i, j int) { few.Quorum[i], few.Quorum[j] = few.Quorum[j], few.Quorum[i] })
	few.Quorum = few.Quorum[:servers]
	return &few
}

// onMinority returns a play in which something is wrong with one server of five, or two,
// twice. Locks are granted all the time.
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

// onMajority returns a play in which something is wrong with three servers of five, of
// which none can be asked for its vote.
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

// restartMajority restarts three servers of five, which have forgotten for whom they
// voted: until whoever they voted for knows that its lease is over, they vote for
// nobody.
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

// crashInTurn restarts one server after the other, so that never more than two of them are
// in quarantine at the same time.
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

// injectMinorityStorm breaks one thing after the other, for about three seconds. There are
// never more than two servers with which anything is wrong.
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
			// Who is next is not one of the two before, with whom something is wrong.
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
