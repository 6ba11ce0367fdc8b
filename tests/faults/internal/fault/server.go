package fault

// serverFaults are what happens to a server as a whole.
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
				s.during("the server has crashed, and lost all", everything, func() {
					s.Server.Kill()
					s.runFor(0.2, 1)
					s.Server.Restart()
				})
			}),
		},
		{
			Name: "server-stands-still", On: singleServer(),
			Inject: injectTwice("the server stands still", 0.3, 3, func(s *System) func() {
				s.Server.Pause()
				return s.Server.Resume
			}),
		},
	}
}

// appendOnly are the args of a server that has written in a file what it confirms, so
// that it is there after a crash. With appendfsync everysec it would sometimes
// confirm first, while it waits for the disk.
func appendOnly() []string { return []string{"--appendonly", "yes", "--appendfsync", "no"} }
