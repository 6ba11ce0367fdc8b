package fault

import "time"

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
			Name: "server-crashes-and-is-empty", On: singleServer(), LosesData: true,
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
			Inject: injectTwice("the server is paused", 0.3, 3, func(s *System) func() {
				s.Server.Pause()
				return s.Server.Resume
			}),
		},
	}
}

// longAway is for longer than an attempt's caller waits for its commit. The commit goes on.
const longAway = 2500 * time.Millisecond

// awayForLong returns a fault of a server that is away for long, and is empty then or has its data.
func awayForLong(name string, isEmpty bool) Fault {
	f := Fault{Name: name, On: singleServer(), Args: appendOnly(), LosesData: isEmpty, Paying: true, Clients: clientsInOutage}
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
