package fault

import "github.com/reqlock/reqlock/internal/redistest"

// traffic is how many grants show that the clients are at work: before something
// breaks, where it is broken for as long as one likes, and after it.
const traffic = 20

// broken plays something that breaks amid the traffic of the clients, and returns
// when that has come back. What play leaves behind is the deployment in health.
func (s *Scene) broken(name string, loss bool, play func()) {
	s.Helper()
	s.Crew.AwaitGrants(traffic)
	end := s.Trouble(name, loss)
	play()
	end()
	s.Crew.AwaitGrants(traffic)
}

// cutOff makes sure that the master is told something that no replica knows.
func (s *Scene) cutOff(master *redistest.Server) {
	s.Helper()
	master.RefuseReplicas(true)
	s.Crew.AwaitGrants(traffic)
}

// someProcess chooses one of the client processes.
func (s *Scene) someProcess() int {
	processes := s.Crew.Processes()
	return processes[s.Random.IntN(len(processes))]
}
