package fault

import (
	"slices"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// stormFaults returns faults that inject several failures at a time.
func stormFaults() []Fault {
	return []Fault{
		{Name: "storm", On: Deployments(), Inject: injectStorm(allInjectors())},
		{Name: "storm-of-refusals", On: singleServer(), Inject: injectStorm(append(allInjectors(), makeReplica, configure("min-replicas-to-write", "1")))},
	}
}

// allInjectors returns the injectors that work on any deployment and in any combination.
func allInjectors() []injector {
	return []injector{
		delaySome, throttleAll, cutConnections, killSubscriptions, refuse(somePaths), pauseProcess, flushScripts,
		halfOpen(somePaths, redistest.ToServer), halfOpen(somePaths, redistest.ToClient),
		impair(allPaths, (*redistest.Path).Reset),
		partition(onePath, (*redistest.Proxy).Heal), partition(allPaths, (*redistest.Proxy).HealDropped),
		configure("maxmemory", "1"),
	}
}

// injectStorm returns an injection that runs for about three seconds. It injects up to
// three failures at a time, each injector at most once at a time.
func injectStorm(injectors []injector) func(s *System) {
	return repeat(1, func(s *System) {
		s.during("a storm", nil, func() {
			heals := map[int]func(){}
			var broken []int // the keys of heals, in the order of injection
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
