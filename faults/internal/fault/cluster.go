package fault

import "github.com/reqlock/reqlock/internal/redistest"

// clusterFaults are those of the nodes of a Redis Cluster, and of its slots.
func clusterFaults() []Fault {
	// With it a dead master holds up no keys but its own.
	partly := []string{"--cluster-require-full-coverage", "no"}
	faults := []Fault{
		{Name: "cluster-master-killed", Losing: true, Args: partly, Play: func(s *Scene) { s.killClusterMaster(false) }},
		{Name: "cluster-master-killed-with-its-data", Losing: true, Play: func(s *Scene) { s.killClusterMaster(true) }},
		{Name: "cluster-master-stopped", Losing: true, Args: partly, Play: stopClusterMaster},
		{Name: "cluster-switch", Play: switchClusterMaster},
		{Name: "cluster-takeover", Losing: true, Play: takeOverClusterMaster},
		{Name: "cluster-slot-moved", Play: moveSlot},
		{Name: "cluster-slot-moved-slowly", Play: func(s *Scene) { s.moveSlotSlowly(func() {}) }},
		{Name: "cluster-client-killed-amid-slot-move", Play: killAmidMove},
		{Name: "cluster-master-restarted-empty", Losing: true, Args: partly, Play: restartClusterMaster},
		{Name: "cluster-replica-restarted", Play: restartClusterReplica},
	}
	for i := range faults {
		faults[i].On = []redistest.Kind{redistest.OnCluster}
	}
	return faults
}

// someKey chooses a lock.
func (s *Scene) someKey() string { return s.Keys[s.Random.IntN(len(s.Keys))] }

// someMaster chooses a master that has a lock.
func (s *Scene) someMaster() *redistest.Server {
	s.Helper()
	return s.Cluster.MasterOf(s.someKey())
}

// killClusterMaster kills a master, if told so with what it alone knew. It comes
// back as a replica.
func (s *Scene) killClusterMaster(withData bool) {
	s.Helper()
	master := s.someMaster()
	s.broken("a master is killed", true, func() {
		if withData {
			s.cutOff(master)
		}
		s.Cluster.Failover(master)
	})
	s.broken("the old master comes back as a replica", false, func() {
		master.Restart()
		s.Cluster.Await()
	})
}

// stopClusterMaster makes a master stand still until it is replaced. When it goes on
// it may do what it was told meanwhile, until it hears that it is a replica.
func stopClusterMaster(s *Scene) {
	s.Helper()
	master := s.someMaster()
	s.broken("a master stands still", true, func() {
		master.Pause()
		s.Cluster.AwaitFailover(master)
		s.Crew.AwaitGrants(traffic)
		master.Resume()
		s.Cluster.Await()
	})
}

// switchClusterMaster makes a master and its replica change roles, and back.
func switchClusterMaster(s *Scene) {
	s.Helper()
	master := s.someMaster()
	for range 2 {
		s.broken("a master and its replica change roles", false, func() { master = s.Cluster.Switch(master) })
	}
}

// takeOverClusterMaster makes a replica take over that does not know what its
// master was told last, and then the other one likewise.
func takeOverClusterMaster(s *Scene) {
	s.Helper()
	master := s.someMaster()
	for range 2 {
		s.broken("a replica takes over that lags", true, func() {
			s.cutOff(master)
			elected := s.Cluster.Takeover(master)
			master.RefuseReplicas(false)
			s.Cluster.Await()
			master = elected
		})
	}
}

// restartClusterMaster restarts a master, which comes back empty, and as a master
// where that did not take so long that it was replaced.
func restartClusterMaster(s *Scene) {
	s.Helper()
	s.broken("a master is restarted empty", true, func() {
		s.someMaster().Restart()
		s.Cluster.Await()
	})
}

// restartClusterReplica ends a node that no client needs, and brings it back.
func restartClusterReplica(s *Scene) {
	s.Helper()
	s.broken("a replica is restarted", false, func() {
		replica := s.Cluster.ReplicaOf(s.someMaster())
		replica.Kill()
		s.Crew.AwaitGrants(traffic)
		replica.Restart()
		s.Cluster.Await()
	})
}
