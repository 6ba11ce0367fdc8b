package fault

import (
	"regexp"
	"strings"
	"sync/atomic"
)

// clientFaults are what happens to client processes.
func clientFaults() []Fault {
	return []Fault{
		{Name: "process-is-killed", On: everywhere(), Play: rounds(3, func(s *Scene) {
			s.during("a process is killed", nil, func() { s.Crew.Kill(s.someProcess()) })
		})},
		{Name: "holder-is-killed", On: everywhere(), Play: rounds(2, func(s *Scene) {
			s.during("a holder is killed", nil, s.killHolder)
		})},
		{Name: "process-stands-still", On: everywhere(), Play: lasting("a process stands still", 2, 2.5, stopping)},
	}
}

// stopping makes a process stand still.
func stopping(s *Scene) func() {
	process := s.someProcess()
	s.Crew.Stop(process)
	return func() { s.Crew.Continue(process) }
}

// killHolder kills a process while it holds a lock.
func (s *Scene) killHolder() {
	s.Helper()
	tries := s.aside()
	s.await("a holder who dies", func() bool {
		processes := s.Crew.Processes()
		process, key := processes[tries.IntN(len(processes))], s.Keys[tries.IntN(len(s.Keys))]
		author, token := s.author(process), ""
		s.await("a lock of the process", func() bool {
			token = s.holderOf(key)
			return strings.HasPrefix(token, author)
		})
		s.Crew.Kill(process)
		// Else it was about to release the lock.
		return s.holderOf(key) == token
	})
}

// holderOf returns the token that holds a lock; "" if none does. Of a quorum that takes
// a majority.
func (s *Scene) holderOf(key string) string {
	if s.Quorum == nil {
		return s.Admin.Get(s.Context(), key).Val()
	}
	votes := map[string]int{}
	for _, voter := range s.Quorum {
		token := voter.Admin.Get(s.Context(), key).Val()
		if votes[token]++; votes[token] > len(s.Quorum)/2 {
			return token
		}
	}
	return ""
}

// authored is how a token looks: the name of who has made it, and a number.
var authored = regexp.MustCompile(`^([0-9a-f]{32}:)\d+$`)

// author returns with what the tokens of a process begin. It learns that from the
// next command of the process with a token in it.
func (s *Scene) author(process int) string {
	s.Helper()
	var author atomic.Pointer[string]
	pass, seen := s.Network.Path(process).Commands.HoldCommand(func(command []string) bool {
		for _, word := range command {
			if found := authored.FindStringSubmatch(word); found != nil {
				author.Store(&found[1])
				return true
			}
		}
		return false
	})
	pass() // the command is looked at, and not held
	s.await("a token of the process", func() bool { return happened(seen) })
	return *author.Load()
}
