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
		play func(s *Scene)
	}{
		{"sentinel-master-killed", func(s *Scene) { s.killSentinelMaster(false) }},
		{"sentinel-master-killed-with-its-data", func(s *Scene) { s.killSentinelMaster(true) }},
		{"sentinel-master-stopped", stopSentinelMaster},
		{"sentinel-switch", switchSentinelMaster},
		{"sentinel-split", splitSentinels},
		{"sentinel-master-restarted-empty", restartSentinelMaster},
		{"sentinel-client-killed-amid-failover", killAmidSentinelFailover},
	} {
		faults = append(faults, Fault{
			Name: f.name, On: onSentinels(), Losing: true, Play: f.play,
		})
	}
	return faults
}

// killSentinelMaster kills the master, if told so with what it alone knew. The old
// one is brought back empty, and made a replica.
func (s *Scene) killSentinelMaster(withData bool) {
	s.Helper()
	master := s.Sentinels.Master()
	s.broken("the master is replaced", func() {
		s.during("the master is killed", s.lost(everything), func() {
			if withData {
				s.cutOff(master)
			}
			master.Kill()
		})
		s.Sentinels.AwaitFailover(master)
	})
	s.returnSentinelMaster(master)
}

// returnSentinelMaster brings a master back that was killed and replaced. It takes
// itself for the master until it is told, but the Sentinels send nobody to it.
func (s *Scene) returnSentinelMaster(master *redistest.Server) {
	s.Helper()
	s.broken("the old master comes back empty", func() {
		master.Restart()
		s.Sentinels.Await()
	})
}

// stopSentinelMaster makes the master stand still until it is replaced. When it goes
// on it does what it was told meanwhile, and what it is told until it is a replica.
func stopSentinelMaster(s *Scene) {
	s.Helper()
	s.stopMaster(s.Sentinels.Master(), s.lost(everything), s.Sentinels)
}

// switchSentinelMaster replaces a master with which nothing is wrong, twice.
func switchSentinelMaster(s *Scene) {
	s.Helper()
	for range 2 {
		s.broken("the master is replaced", func() {
			s.losing("that is on purpose", s.Sentinels.Master(), s.lost(everything), func() { s.Sentinels.Switch() })
		})
	}
}

// splitSentinels makes two masters. One of the Sentinels stands still meanwhile:
// clients that listen to it are not told, and stay at the old master by the
// connections that they have.
func splitSentinels(s *Scene) {
	s.Helper()
	deaf := s.heardLeast()
	s.broken("the master is replaced", func() {
		s.losing("there are two masters", s.Sentinels.Master(), everything, func() {
			deaf.Pause()
			s.Sentinels.Split()
			s.Crew.AwaitGrants(3 * traffic)
			deaf.Resume()
			s.Sentinels.Heal()
		})
	})
}

// heardLeast returns the Sentinel to which the fewest clients listen, of those to
// which any does: so some clients hear of a failover, and some do not.
func (s *Scene) heardLeast() *redistest.Server {
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
func restartSentinelMaster(s *Scene) {
	s.Helper()
	s.broken("the master is restarted", func() {
		s.during("the master comes back empty", everything, func() {
			s.Sentinels.Master().Restart()
			s.Sentinels.Await()
		})
	})
}

// killAmidSentinelFailover kills a client process while there is no master.
func killAmidSentinelFailover(s *Scene) {
	s.Helper()
	master := s.Sentinels.Master()
	s.broken("the master is replaced", func() {
		s.during("the master is killed, and then a client", everything, master.Kill)
		s.Crew.Kill(s.someProcess())
		s.Sentinels.AwaitFailover(master)
	})
	s.returnSentinelMaster(master)
}
