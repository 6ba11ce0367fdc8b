package fault

import (
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

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

// failFastFaults returns faults of a server that does not reply for so long that new callers
// are refused at once.
func failFastFaults() []Fault {
	return []Fault{beyondFailFast(Fault{
		Name: "server-stands-still-beyond-fail-fast", On: singleServer(),
	}, "the server is paused", func(s *System) func() {
		s.Server.Pause()
		return s.Server.Resume
	})}
}

// quorumFailFastFaults returns the same faults of three of five servers.
func quorumFailFastFaults() []Fault {
	return []Fault{beyondFailFast(Fault{
		Name: "quorum-majority-stands-still-beyond-fail-fast", On: []Deployment{OnQuorum},
	}, "a majority is paused", func(s *System) func() { return pauseServers(s.subset(3)) })}
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
