package fault

import (
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// sentinelFaults returns the faults of a master with Sentinels. In each of them a replica
// takes over that may lack the last writes, so each of them loses data.
func sentinelFaults() []Fault {
	var faults []Fault
	for _, f := range []struct {
		name   string
		inject func(s *System)
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
			Name: f.name, On: onSentinels(), Inject: f.inject,
		})
	}
	return append(faults, Fault{
		Name: "sentinel-master-killed-and-replaced-late", On: onSentinels(),
		Paying: true, Clients: clientsInOutage, Inject: killSentinelMasterForLong,
	})
}

// killSentinelMaster kills the master and restarts it without its data, as a replica. With
// withData, the master first gets writes that no replica has.
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

// killSentinelMasterForLong kills the master with its data. It is replaced when commits have
// failed, and go on.
func killSentinelMasterForLong(s *System) {
	s.Helper()
	master := s.Sentinels.Master()
	s.disrupt("the master is replaced late", func() {
		s.during("the master is killed", s.lossOf(everything), func() {
			s.isolateMaster(master)
			for _, sentinel := range s.Sentinels.Sentinels() {
				sentinel.Pause()
			}
			master.Kill()
		})
		s.sleep(longAway)
		for _, sentinel := range s.Sentinels.Sentinels() {
			sentinel.Resume()
		}
		s.Sentinels.AwaitFailover(master)
	})
	s.returnSentinelMaster(master)
}

// returnSentinelMaster restarts a master that was killed and replaced. It starts as a
// master, until the Sentinels make it a replica. They send no client to it.
func (s *System) returnSentinelMaster(master *redistest.Server) {
	s.Helper()
	s.disrupt("the old master restarts without data", func() {
		master.Restart()
		s.Sentinels.Await()
	})
}

// stopSentinelMaster pauses the master until it is replaced. When the old master continues,
// it executes the commands that it received, and serves until it is a replica.
func stopSentinelMaster(s *System) {
	s.Helper()
	s.pauseMaster(s.Sentinels.Master(), s.lossOf(everything), s.Sentinels)
}

// switchSentinelMaster replaces a healthy master, twice.
func switchSentinelMaster(s *System) {
	s.Helper()
	for range 2 {
		s.disrupt("the master is replaced", func() {
			s.replaceServing("a healthy master is replaced", s.Sentinels.Master(), s.lossOf(everything), func() { s.Sentinels.Switch() })
		})
	}
}

// splitSentinels makes two masters, while one of the Sentinels is paused. Clients that
// subscribe to that Sentinel are not notified, and keep their connections to the old
// master.
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

// leastSubscribed returns the Sentinel with the fewest subscribed clients, of those that
// have any. So some clients are notified of a failover, and some are not. It waits until a
// client is subscribed.
func (s *System) leastSubscribed() (least *redistest.Server) {
	s.Helper()
	suite.Eventually(s, "a client is subscribed to a sentinel", suite.Every(subscriptionPause, func() bool {
		fewest := 0
		for _, sentinel := range s.Sentinels.Sentinels() {
			client := sentinel.Client(s)
			clients, err := client.ClientList(s.Context()).Result()
			if err != nil {
				s.Fatalf("CLIENT LIST of the sentinel %s: %v", sentinel.Addr(), err)
			}
			_ = client.Close()
			// A client may have sent other commands after SUBSCRIBE, such as PING.
			if n := strings.Count(clients, " sub=") - strings.Count(clients, " sub=0 "); n > 0 && (least == nil || n < fewest) {
				least, fewest = sentinel, n
			}
		}
		return least != nil
	}))
	return least
}

// subscriptionPause is the pause between two looks at the subscriptions of all Sentinels.
const subscriptionPause = 20 * time.Millisecond

// restartSentinelMaster restarts the master without its data. Mostly it is back before the
// Sentinels notice: then its replicas lose their data, too. Otherwise a replica takes over,
// and loses later writes when it becomes a replica again. So the loss lasts until all
// servers are healthy.
func restartSentinelMaster(s *System) {
	s.Helper()
	s.disrupt("the master is restarted", func() {
		s.during("the master restarts without data", everything, func() {
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
		s.during("the master and a client are killed", everything, master.Kill)
		s.Workload.Kill(s.someProcess())
		s.Sentinels.AwaitFailover(master)
	})
	s.returnSentinelMaster(master)
}
