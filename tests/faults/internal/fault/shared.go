package fault

// sharedFaults returns faults of many clients that compete for permits and for shared leases:
// in several processes, and in one, where leases are handed off.
func sharedFaults() []Fault {
	calm := func(s *System) {
		s.runFor(6, 8)
		s.awaitGrants()
	}
	return []Fault{
		{Name: "shared-leases", On: withOneCopy(), SharedOnly: true, Clients: 6, Inject: calm},
		{Name: "shared-leases-in-one-process", On: singleServer(), SharedOnly: true, OneProcess: true, Inject: calm},
		{
			Name: "holders-of-shared-leases-are-killed", On: withOneCopy(), SharedOnly: true, Clients: 4,
			Inject: repeat(3, func(s *System) {
				s.during("a holder is killed", nil, s.killHolder)
				s.runFor(1, 2)
			}),
		},
	}
}
