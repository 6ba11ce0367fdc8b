package fault

import "time"

// minHold is for how long some clients keep a key locked at least. They mostly release it
// after a few milliseconds.
const minHold = 250 * time.Millisecond

// minHoldFaults returns faults of clients that release a key which stays locked. A process
// that is killed while it holds such a key leaves the key to its TTL.
func minHoldFaults() []Fault {
	return []Fault{{
		Name: "holders-release-early", On: withOneCopy(), MinHold: minHold,
		Inject: repeat(2, func(s *System) {
			s.runFor(1, 2)
			s.during("a process is killed", nil, func() { s.Workload.Kill(s.someProcess()) })
		}),
	}}
}
