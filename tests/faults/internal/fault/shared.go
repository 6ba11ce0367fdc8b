package fault

import (
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
)

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
			Name: "shared-leases-are-deleted", On: withOneCopy(), LosesData: true, SharedOnly: true,
			Inject: repeat(6, func(s *System) {
				s.takeAway("the shared leases are deleted", func(key string) bool { return s.Admin.Del(s.Context(), companion(key, ":s")).Val() == 1 })
				s.runFor(0.3, 0.6)
			}),
		},
		{
			Name: "a-permit-ends-early", On: withOneCopy(), LosesData: true, SharedOnly: true, Clients: 4,
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
