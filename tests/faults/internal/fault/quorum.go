package fault

import (
	"slices"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/check"
	"github.com/reqlock/reqlock/tests/faults/internal/network"
)

// Quarantine is for how long a server that has just started gives no votes where
// leases have this TTL: as long as the longest of them, which are extended by hand.
func Quarantine(ttl time.Duration) time.Duration { return 2 * ttl }

// quorumFaults are what happens to a few of the servers of a quorum. While they are a
// minority, nobody notices. While they are the majority, nobody is granted anything.
func quorumFaults() []Fault {
	var faults []Fault
	for _, ill := range []struct {
		name, what  string
		least, most float64
		breaks      strike
	}{
		{"crash", "have crashed", 0, 1, crashing},
		{"stand-still", "stand still", 1, 3, standing},
		{"are-slow", "are slow", 1, 2, delayed(10, 40)},
		{"are-late", "are late", 1, 2, delayed(75, 150)},
		{"are-refused", "are refused", 0.5, 2, disconnected},
		{"are-cut", "are cut off, again and again", 0.3, 1, flapping},
		{"are-reset", "are reset", 0.5, 1.5, poisoned(all, (*network.Path).Reset)},
		{"hear-nothing", "hear nothing", 0.5, 2, deaf(network.Upstream)},
		{"say-nothing", "say nothing", 0.5, 2, deaf(network.Downstream)},
		{"want-memory", "want memory", 0.5, 2, configured("maxmemory", "1")},
		{"are-replicas", "are replicas", 0.5, 2, replica},
		{"forget-scripts", "forget scripts", 0.2, 0.5, forgetful},
		{"pause", "pause their clients", 0.1, 0.2, pausing},
	} {
		faults = append(faults, Fault{
			Name: "quorum-servers-" + ill.name, Play: minority(ill.what, ill.least, ill.most, ill.breaks),
		})
	}
	faults = append(faults,
		Fault{Name: "quorum-servers-crash-and-keep-all", Args: keeping(), Play: minority("have crashed", 0, 1, crashingOnly)},
		Fault{Name: "quorum-servers-crash-in-turn", Play: rolling},
		Fault{Name: "quorum-servers-storm", Play: minorityStorm},
		Fault{Name: "quorum-majority-crashes", Play: rounds(2, restartMajority)},
		Fault{Name: "quorum-majority-stands-still", Play: majority("stands still", standing)},
		Fault{Name: "quorum-majority-is-refused", Play: majority("is refused", disconnected)},
		Fault{Name: "quorum-majority-hears-nothing", Play: majority("hears nothing", deaf(network.Upstream))},
		Fault{Name: "quorum-majority-says-nothing", Play: majority("says nothing", deaf(network.Downstream))},
	)
	for i := range faults {
		faults[i].On = []Deployment{OnQuorum}
	}
	return faults
}

// of returns the scene with so many servers of the quorum alone, by chance.
func (s *Scene) of(servers int) *Scene {
	few := *s
	few.few = true
	few.Quorum = slices.Clone(s.Quorum)
	s.Random.Shuffle(len(few.Quorum), func(i, j int) { few.Quorum[i], few.Quorum[j] = few.Quorum[j], few.Quorum[i] })
	few.Quorum = few.Quorum[:servers]
	return &few
}

// minority returns a play in which something is wrong with one server of five, or two,
// twice. Locks are granted all the time.
func minority(what string, least, most float64, breaks strike) func(s *Scene) {
	return rounds(2, func(s *Scene) {
		ill := s.of(1 + s.Random.IntN(2))
		s.during(check.Minority+": servers "+what, nil, func() {
			mend := breaks(ill)
			s.linger(least, most)
			s.well()
			mend()
		})
	})
}

// majority returns a play in which something is wrong with three servers of five, of
// which none can be asked for its vote.
func majority(what string, breaks strike) func(s *Scene) {
	return rounds(2, func(s *Scene) {
		ill := s.of(3)
		s.during("a majority "+what, nil, func() {
			mend := breaks(ill)
			s.during(check.Powerless+": a majority "+what, nil, func() { s.linger(1, 3) })
			mend()
		})
	})
}

// restartMajority restarts three servers of five, which have forgotten for whom they
// voted: until whoever they voted for knows that its lease is over, they vote for
// nobody.
func restartMajority(s *Scene) {
	s.Helper()
	ill := s.of(3)
	s.during("a majority has crashed", nil, func() {
		for _, voter := range ill.Quorum {
			voter.Kill()
		}
		s.during(check.Powerless+": a majority has just started", nil, func() {
			s.linger(0, 1)
			begun := time.Now()
			ill.restart()
			s.pass(time.Until(begun.Add(Quarantine(s.TTL))))
		})
		ill.serveQuarantine()
	})
}

// rolling restarts one server after the other, so that never more than two of them are
// in quarantine at the same time.
func rolling(s *Scene) {
	s.Helper()
	s.well()
	order := s.of(len(s.Quorum)).Quorum
	s.during(check.Minority+": servers crash in turn", nil, func() {
		var before *Scene
		for _, voter := range order {
			next := *s
			next.Quorum = []Voter{voter}
			voter.Kill()
			s.linger(0, 0.5)
			next.restart()
			s.well()
			if before != nil {
				before.serveQuarantine()
			}
			before = &next
		}
		before.serveQuarantine()
	})
	s.well()
}

// minorityStorm breaks one thing after the other, for about three seconds. There are
// never more than two servers with which anything is wrong.
func minorityStorm(s *Scene) {
	strikes := []strike{
		crashing, standing, delayed(10, 40), delayed(75, 150), disconnected, flapping,
		deaf(network.Upstream), deaf(network.Downstream), configured("maxmemory", "1"), replica, forgetful,
	}
	s.well()
	s.during(check.Minority+": a storm", nil, func() {
		order := s.of(len(s.Quorum)).Quorum
		var mends []func()
		for i := range 8 {
			if len(mends) == 2 {
				mends[0]()
				mends = mends[1:]
			}
			// Who is next is not one of the two before, with whom something is wrong.
			ill := *s
			ill.few, ill.Quorum = true, order[i%len(order):][:1]
			mends = append(mends, strikes[s.Random.IntN(len(strikes))](&ill))
			s.linger(0.2, 0.8)
		}
		for _, mend := range mends {
			mend()
		}
	})
	s.well()
}
