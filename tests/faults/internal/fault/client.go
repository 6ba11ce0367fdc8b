package fault

import (
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// clientFaults returns the faults of client processes.
func clientFaults() []Fault {
	return []Fault{
		{Name: "process-is-killed", On: Deployments(), Inject: repeat(3, func(s *System) {
			s.during("a process is killed", nil, func() { s.Workload.Kill(s.someProcess()) })
		})},
		{Name: "holder-is-killed", On: Deployments(), Inject: repeat(2, func(s *System) {
			s.during("a holder is killed", nil, s.killHolder)
		})},
		{Name: "process-stands-still", On: Deployments(), Inject: injectTwice("a process is paused", 2, 2.5, pauseProcess)},
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
	pass, seen := s.Network.Path(process).HoldCommand(func(command []string) bool {
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

// sharedFaults returns faults of many clients that compete for permits and for shared leases:
// in several processes, with one kind of client of Redis or two, and in one process, where
// leases are handed off.
func sharedFaults() []Fault {
	noFault := func(s *System) {
		s.runFor(6, 8)
		s.awaitGrants()
	}
	return []Fault{
		{Name: "shared-leases", On: withOneCopy(), SharedOnly: true, Clients: 6, Inject: noFault},
		{Name: "readers-never-pause", On: withOneCopy(), SharedOnly: true, ReadersOnly: true, Clients: 6, Inject: noFault},
		{Name: "clients-of-two-kinds", On: singleServer(), TwoKinds: true, Clients: 6, Inject: noFault},
		{Name: "shared-leases-in-one-process", On: singleServer(), SharedOnly: true, OneProcess: true, Inject: noFault},
		{
			Name: "holders-of-shared-leases-are-killed", On: withOneCopy(), SharedOnly: true, Clients: 4,
			Inject: repeat(3, func(s *System) {
				s.during("a holder is killed", nil, s.killHolder)
				s.runFor(1, 2)
			}),
		},
		{
			Name: "shared-leases-are-deleted", On: withOneCopy(), SharedOnly: true,
			Inject: repeat(6, func(s *System) {
				s.takeAway("the shared leases are deleted", func(key string) bool { return s.Admin.Del(s.Context(), companion(key, ":s")).Val() == 1 })
				s.runFor(0.3, 0.6)
			}),
		},
		{
			Name: "a-permit-ends-early", On: withOneCopy(), SharedOnly: true, Clients: 4,
			Inject: repeat(3, func(s *System) {
				s.endPermitEarly()
				s.runFor(3, 3.5)
			}),
		},
	}
}

// endPermitEarly ends the lease of a permit on the server, as if the server's clock had jumped
// forward for this lease alone. It chooses a lease that its holder has held for a while.
func (s *System) endPermitEarly() {
	s.Helper()
	tries := s.forkRandom()
	s.await("a permit that is held for long", func() bool {
		key := s.Keys[tries.IntN(len(s.Keys))]
		leases := companion(key, ":s")
		before := s.Admin.ZRange(s.Context(), leases, 0, -1).Val()
		s.sleep(s.TTL / 3)
		for _, token := range before {
			_, limit, _, _ := store.ParseToken(token)
			if limit <= 0 || s.Admin.ZScore(s.Context(), leases, token).Err() != nil {
				continue
			}
			ended := false
			s.during("a permit ends early", only(key), func() {
				ended = s.Admin.ZAddArgs(s.Context(), leases, redis.ZAddArgs{
					XX: true, Ch: true, Members: []redis.Z{{Score: 1, Member: token}},
				}).Val() == 1
			})
			return ended
		}
		return false
	})
}
