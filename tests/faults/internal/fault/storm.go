package fault

import (
	"slices"

	"github.com/reqlock/reqlock/tests/faults/internal/network"
)

// stormFaults are several faults at the same time.
func stormFaults() []Fault {
	return []Fault{
		{Name: "storm", On: allDeployments(), Inject: injectStorm(allInjectors())},
		{Name: "storm-of-refusals", On: singleServer(), Inject: injectStorm(append(allInjectors(), makeReplica, configure("min-replicas-to-write", "1")))},
	}
}

// allInjectors is what can be broken in any deployment, whatever else is broken.
func allInjectors() []injector {
	return []injector{
		delaySome, throttleAll, cutConnections, killSubscriptions, refuseSome, pauseProcess, flushScripts,
		halfOpen(network.Upstream), halfOpen(network.Downstream),
		impair(allPaths, (*network.Path).Reset),
		partition(onePath, healDelivering), partition(allPaths, healDropping),
		configure("maxmemory", "1"),
	}
}

// injectStorm returns a play in which up to three things are broken at the same time,
// and none of them twice, for about three seconds.
func injectStorm(injectors []injector) func(s *System) {
	return repeat(1, func(s *System) {
		s.during("a storm", nil, func() {
			heals := map[int]func(){}
			var broken []int // the keys of mends
			heal := func(i int) {
				heals[broken[i]]()
				delete(heals, broken[i])
				broken = slices.Delete(broken, i, i+1)
			}
			for range 12 {
				if len(broken) == 3 {
					heal(s.Random.IntN(len(broken)))
				}
				if next := s.Random.IntN(len(injectors)); heals[next] == nil {
					heals[next] = injectors[next](s)
					broken = append(broken, next)
				}
				s.runFor(0.2, 0.6)
			}
			for len(broken) > 0 {
				heal(len(broken) - 1)
			}
		})
	})
}
