package fault

import (
	"slices"

	"github.com/reqlock/reqlock/tests/faults/internal/network"
)

// storms are several faults at the same time.
func storms() []Fault {
	return []Fault{
		{Name: "storm", On: everywhere(), Play: storming(everyStrike())},
		{Name: "storm-of-refusals", On: alone(), Play: storming(append(everyStrike(), replica, configured("min-replicas-to-write", "1")))},
	}
}

// everyStrike is what can be broken in any deployment, whatever else is broken.
func everyStrike() []strike {
	return []strike{
		slow, thin, cutting, deafening, refusing, stopping, forgetful,
		halfOpen(network.Upstream), halfOpen(network.Downstream),
		poisoned(all, (*network.Path).Reset),
		partitioned(one, deliver), partitioned(all, lose),
		configured("maxmemory", "1"),
	}
}

// storming returns a play in which up to three things are broken at the same time,
// and none of them twice, for about three seconds.
func storming(strikes []strike) func(s *Scene) {
	return rounds(1, func(s *Scene) {
		s.during("a storm", nil, func() {
			mends := map[int]func(){}
			var broken []int // the keys of mends
			mend := func(i int) {
				mends[broken[i]]()
				delete(mends, broken[i])
				broken = slices.Delete(broken, i, i+1)
			}
			for range 12 {
				if len(broken) == 3 {
					mend(s.Random.IntN(len(broken)))
				}
				if next := s.Random.IntN(len(strikes)); mends[next] == nil {
					mends[next] = strikes[next](s)
					broken = append(broken, next)
				}
				s.linger(0.2, 0.6)
			}
			for len(broken) > 0 {
				mend(len(broken) - 1)
			}
		})
	})
}
