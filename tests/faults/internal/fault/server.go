package fault

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
		{
			Name: "server-stands-still", On: singleServer(),
			Inject: injectTwice("the server is paused", 0.3, 3, func(s *System) func() {
				s.Server.Pause()
				return s.Server.Resume
			}),
		},
	}
}

// appendOnly returns the arguments of a server that writes each confirmed command to a
// file, and so has it after a crash. With appendfsync everysec the server would sometimes
// confirm a command before it is written.
func appendOnly() []string { return []string{"--appendonly", "yes", "--appendfsync", "no"} }
