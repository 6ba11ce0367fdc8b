package fault

import (
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// clientFaults returns the faults of client processes.
func clientFaults() []Fault {
	return []Fault{
		{Name: "process-is-killed", On: allDeployments(), Inject: repeat(3, func(s *System) {
			s.during("a process is killed", nil, func() { s.Workload.Kill(s.someProcess()) })
		})},
		{Name: "holder-is-killed", On: allDeployments(), Inject: repeat(2, func(s *System) {
			s.during("a holder is killed", nil, s.killHolder)
		})},
		{Name: "process-stands-still", On: allDeployments(), Inject: injectTwice("a process is paused", 2, 2.5, pauseProcess)},
	}
}

// pauseProcess pauses a process until heal is called.
func pauseProcess(s *System) func() {
	process := s.someProcess()
	s.Workload.Stop(process)
	return func() { s.Workload.Continue(process) }
}

// killHolder kills a process while it holds a lock.
func (s *System) killHolder() {
	s.Helper()
	tries := s.forkRandom()
	s.await("the death of a holder", func() bool {
		processes := s.Workload.Processes()
		process, key := processes[tries.IntN(len(processes))], s.Keys[tries.IntN(len(s.Keys))]
		author, token := s.tokenPrefix(process), ""
		s.await("a lock of the process", func() bool {
			for _, one := range s.holdersOf(key) {
				if strings.HasPrefix(one, author) {
					token = one
				}
			}
			return token != ""
		})
		s.Workload.Kill(process)
		// The key changed: the process was about to release the lock when it was killed.
		return slices.Contains(s.holdersOf(key), token)
	})
}

// holdersOf returns the tokens that hold a lock. In a quorum, a majority of the servers must
// have the token.
func (s *System) holdersOf(key string) []string {
	if s.Quorum == nil {
		return append(s.Admin.ZRange(s.Context(), companion(key, ":s"), 0, -1).Val(), s.Admin.Get(s.Context(), key).Val())
	}
	votes := map[string]int{}
	for _, voter := range s.Quorum {
		token := voter.Admin.Get(s.Context(), key).Val()
		if votes[token]++; votes[token] > len(s.Quorum)/2 {
			return []string{token}
		}
	}
	return nil
}

// processTokenPattern matches a token: the id of its process, and a number.
var processTokenPattern = regexp.MustCompile(`^([0-9a-f]{32}:)\d+$`)

// tokenPrefix returns the prefix of all tokens of a process. It reads the prefix from the
// next command of the process that contains a token.
func (s *System) tokenPrefix(process int) string {
	s.Helper()
	var author atomic.Pointer[string]
	pass, seen := s.Network.Path(process).Commands.HoldCommand(func(command []string) bool {
		for _, word := range command {
			if found := processTokenPattern.FindStringSubmatch(word); found != nil {
				author.Store(&found[1])
				return true
			}
		}
		return false
	})
	pass() // no command is held
	s.await("a token of the process", func() bool { return suite.IsClosed(seen) })
	return *author.Load()
}
