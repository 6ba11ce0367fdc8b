package fault

// serverFaults are what happens to a server as a whole.
func serverFaults() []Fault {
	return []Fault{
		{
			Name: "server-crashes", On: alone(), Args: keeping(),
			Play: lasting("the server has crashed", 0.2, 1, func(s *Scene) func() {
				s.Server.Kill()
				return s.Server.RestartFromDisk
			}),
		},
		{
			Name: "server-crashes-and-is-empty", On: alone(), Losing: true,
			Play: rounds(2, func(s *Scene) {
				s.during("the server has crashed, and lost all", everything, func() {
					s.Server.Kill()
					s.linger(0.2, 1)
					s.Server.Restart()
				})
			}),
		},
		{
			Name: "server-stands-still", On: alone(),
			Play: lasting("the server stands still", 0.3, 3, func(s *Scene) func() {
				s.Server.Pause()
				return s.Server.Resume
			}),
		},
	}
}

// keeping are the args of a server that has written in a file what it confirms, so
// that it is there after a crash. With appendfsync everysec it would sometimes
// confirm first, while it waits for the disk.
func keeping() []string { return []string{"--appendonly", "yes", "--appendfsync", "no"} }
