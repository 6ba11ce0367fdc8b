package fault

import (
	"cmp"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// sentinelFaults are those of a master that Sentinels watch. They replace it by a
// replica that may not know what the master was told last, also where nothing is
// wrong with it, so each of them loses data.
func sentinelFaults() []Fault {
	var faults []Fault
	for _, f := range []struct {
		name string
		play func(s *System)
	}{
		{"sentinel-master-killed", func(s *System) { s.killSentinelMaster(false) }},
		{"sentinel-master-killed-with-its-data", func(s *System) { s.killSentinelMaster(true) }},
		{"sentinel-master-stopped", stopSentinelMaster},
		{"sentinel-switch", switchSentinelMaster},
		{"sentinel-split", splitSentinels},
		{"sentinel-master-restarted-empty", restartSentinelMaster},
		{"sentinel-client-killed-amid-failover", killAmidSentinelFailover},
	} {
		faults = append(faults, Fault{
			Name: f.name, On: onSentinels(), LosesData: true, Inject: f.play,
		})
	}
	return faults
}

// killSentinelMaster kills the master, if told so with what it alone knew. The old
// one is brought back empty, and made a replica.
func (s *System) killSentinelMaster(withData bool) {
	s.Helper()
	master := s.Sentinels.Master()
	s.disrupt("the master is replaced", func() {
		s.during("the master is killed", s.lossOf(everything), func() {
			if withData {
				s.isolateMaster(master)
			}
			master.Kill()
		})
		s.Sentinels.AwaitFailover(master)
	})
	s.returnSentinelMaster(master)
}

// returnSentinelMaster brings a master back that was killed and replaced. It takes
// itself for the master until it is told, but the Sentinels send nobody to it.
func (s *System) returnSentinelMaster(master *redistest.Server) {
	s.Helper()
	s.disrupt("the old master comes back empty", func() {
		master.Restart()
		s.Sentinels.Await()
	})
}

// stopSentinelMaster makes the master stand still until it is replaced. When it goes
// on it does what it was told meanwhile, and what it is told until it is a replica.
func stopSentinelMaster(s *System) {
	s.Helper()
	s.pauseMaster(s.Sentinels.Master(), s.lossOf(everything), s.Sentinels)
}

// switchSentinelMaster replaces a master with which nothing is wrong, twice.
func switchSentinelMaster(s *System) {
	s.Helper()
	for range 2 {
		s.disrupt("the master is replaced", func() {
			s.replaceServing("that is on purpose", s.Sentinels.Master(), s.lossOf(everything), func() { s.Sentinels.Switch() })
		})
	}
}

// splitSentinels makes two masters. One of the Sentinels stands still meanwhile:
// clients that listen to it are not told, and stay at the old master by the
// connections that they have.
func splitSentinels(s *System) {
	s.Helper()
	silent := s.leastSubscribed()
	s.disrupt("the master is replaced", func() {
		s.replaceServing("there are two masters", s.Sentinels.Master(), everything, func() {
			silent.Pause()
			s.Sentinels.Split()
			s.Workload.AwaitGrants(3 * someGrants)
			silent.Resume()
			s.Sentinels.Heal()
		})
	})
}

// leastSubscribed returns the Sentinel to which the fewest clients listen, of those to
// which any does: so some clients hear of a failover, and some do not.
func (s *System) leastSubscribed() *redistest.Server {
	s.Helper()
	listeners := map[*redistest.Server]int{}
	for _, sentinel := range s.Sentinels.Sentinels() {
		client := sentinel.Client(s)
		clients, err := client.ClientList(s.Context()).Result()
		if err != nil {
			s.Fatalf("CLIENT LIST of the sentinel %s: %v", sentinel.Addr(), err)
		}
		_ = client.Close()
		if n := strings.Count(clients, " cmd=subscribe "); n > 0 {
			listeners[sentinel] = n
		}
	}
	sentinels := slices.DeleteFunc(s.Sentinels.Sentinels(), func(sentinel *redistest.Server) bool { return listeners[sentinel] == 0 })
	if len(sentinels) == 0 {
		s.Fatalf("no client listens to a sentinel")
	}
	return slices.MinFunc(sentinels, func(a, b *redistest.Server) int { return cmp.Compare(listeners[a], listeners[b]) })
}

// restartSentinelMaster restarts the master, which comes back empty before anybody
// has missed it, mostly: then its replicas forget all that they have, too. Else a
// replica takes over, and what it was told since is lost: so the loss lasts until all
// are healthy.
func restartSentinelMaster(s *System) {
	s.Helper()
	s.disrupt("the master is restarted", func() {
		s.during("the master comes back empty", everything, func() {
			s.Sentinels.Master().Restart()
			s.Sentinels.Await()
		})
	})
}

// killAmidSentinelFailover kills a client process while there is no master.
func killAmidSentinelFailover(s *System) {
	s.Helper()
	master := s.Sentinels.Master()
	s.disrupt("the master is replaced", func() {
		s.during("the master is killed, and then a client", everything, master.Kill)
		s.Workload.Kill(s.someProcess())
		s.Sentinels.AwaitFailover(master)
	})
	s.returnSentinelMaster(master)
}
