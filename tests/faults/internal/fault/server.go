package fault

import (
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// serverFaults returns the faults of a whole server.
func serverFaults() []Fault {
	return []Fault{
		{
			Name: "server-crashes", On: singleServer(), Args: appendOnly(),
			Inject: injectTwice("the server has crashed", 0.2, 1, func(s *System) func() {
				s.Server.Kill()
				return s.Server.RestartFromDisk
			}),
		},
		{
			Name: "server-crashes-and-is-empty", On: singleServer(),
			Inject: repeat(2, func(s *System) {
				s.during("the server has crashed and lost its data", everything, func() {
					s.Server.Kill()
					s.runFor(0.2, 1)
					s.Server.Restart()
				})
			}),
		},
		awayForLong("server-is-away-for-long", false),
		awayForLong("server-is-away-for-long-and-is-empty", true),
		{
			Name: "server-stands-still", On: singleServer(),
			Inject: injectTwice("the server is paused", 0.3, 3, pauseServer),
		},
	}
}

// longAway is for longer than an attempt's caller waits for its commit. The commit goes on.
const longAway = 2500 * time.Millisecond

// awayForLong returns a fault of a server that is away for long, and is empty then or has its data.
func awayForLong(name string, isEmpty bool) Fault {
	f := Fault{Name: name, On: singleServer(), Args: appendOnly(), Paying: true, Clients: clientsInOutage}
	var lost Loss
	if isEmpty {
		lost = everything
	}
	f.Inject = repeat(1, func(s *System) {
		s.during("the server is away for long", lost, func() {
			s.Server.Kill()
			s.sleep(longAway)
			s.runFor(0, 1)
			if isEmpty {
				s.Server.Restart()
			} else {
				s.Server.RestartFromDisk()
			}
		})
	})
	return f
}

// appendOnly returns the arguments of a server that writes each confirmed command to a
// file, and so has it after a crash. With appendfsync everysec the server would sometimes
// confirm a command before it is written.
func appendOnly() []string { return []string{"--appendonly", "yes", "--appendfsync", "no"} }

// failFast is after how long an outage the clients of these faults are refused at once. An
// outage of longestOutage TTLs is several times as long.
const (
	failFast       = 500 * time.Millisecond
	shortestOutage = 5
	longestOutage  = 6
)

// clientsInOutage is the number of clients in each process. Many of them wait without a bound
// when the outage begins, and keep their places: the others call again and again.
const clientsInOutage = 6

// failFastFaults returns faults of a server, or of three of five servers, that do not reply for
// so long that new callers are refused at once.
func failFastFaults() []Fault {
	return []Fault{
		beyondFailFast(Fault{Name: "server-stands-still-beyond-fail-fast", On: singleServer()}, "the server is paused", pauseServer),
		beyondFailFast(Fault{Name: "quorum-majority-stands-still-beyond-fail-fast", On: []Deployment{OnQuorum}}, "a majority is paused",
			func(s *System) func() { return pauseServers(s.subset(3)) }),
	}
}

// pauseServer pauses the server.
func pauseServer(s *System) func() {
	s.Server.Pause()
	return s.Server.Resume
}

// beyondFailFast adds a long outage to a fault.
func beyondFailFast(f Fault, what string, inject injector) Fault {
	f.FailFast, f.Clients = failFast, clientsInOutage
	f.Inject = repeat(1, func(s *System) {
		s.during(what, nil, func() {
			heal := inject(s)
			s.during(validate.NoGrants+": "+what, nil, func() {
				s.during(validate.Outage+": "+what, nil, func() { s.runFor(shortestOutage, longestOutage) })
			})
			heal()
		})
	})
	return f
}
