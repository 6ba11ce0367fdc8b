package fault

import "github.com/reqlock/reqlock/internal/testkit/redistest"

// clusterFaults are those of the nodes of a Redis Cluster, and of its slots.
func clusterFaults() []Fault {
	// With it a dead master holds up no keys but its own.
	partly := []string{"--cluster-require-full-coverage", "no"}
	// What the only replica has acknowledged is not lost with its master.
	unacknowledged := []Deployment{OnCluster}
	faults := []Fault{
		{Name: "cluster-master-killed", On: unacknowledged, Losing: true, Args: partly, Play: func(s *Scene) { s.killClusterMaster(false) }},
		{Name: "cluster-master-killed-with-its-data", On: unacknowledged, Losing: true, Play: func(s *Scene) { s.killClusterMaster(true) }},
		{Name: "cluster-master-stopped", On: unacknowledged, Losing: true, Args: partly, Play: stopClusterMaster},
		{Name: "cluster-switch", Play: switchClusterMaster},
		{Name: "cluster-takeover", On: unacknowledged, Losing: true, Play: takeOverClusterMaster},
		{Name: "cluster-slot-moved", Play: moveSlot},
		{Name: "cluster-slot-moved-slowly", Play: func(s *Scene) { s.moveSlotSlowly(func() {}) }},
		{Name: "cluster-client-killed-amid-slot-move", Play: killAmidMove},
		{Name: "cluster-master-restarted-empty", Losing: true, Args: partly, Play: restartClusterMaster},
		{Name: "cluster-replica-restarted", Play: restartClusterReplica},
	}
	for i := range faults {
		if faults[i].On == nil {
			faults[i].On = onCluster()
		}
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
	s.broken("a master is replaced", func() {
		s.during("a master is killed", s.lost(s.slotsOf(master)), func() {
			if withData {
				s.cutOff(master)
			}
			master.Kill()
		})
		s.Cluster.AwaitFailover(master)
	})
	s.broken("the old master comes back as a replica", func() {
		master.Restart()
		s.Cluster.Await()
	})
}

// stopClusterMaster makes a master stand still until it is replaced. When it goes on
// it may do what it was told meanwhile, until it hears that it is a replica.
func stopClusterMaster(s *Scene) {
	s.Helper()
	master := s.someMaster()
	s.stopMaster(master, s.lost(s.slotsOf(master)), s.Cluster)
}

// switchClusterMaster makes a master and its replica change roles, and back.
func switchClusterMaster(s *Scene) {
	s.Helper()
	master := s.someMaster()
	for range 2 {
		s.broken("a master and its replica change roles", func() { master = s.Cluster.Switch(master) })
	}
}

// takeOverClusterMaster makes a replica take over that does not know what its
// master was told last, and then the other one likewise.
func takeOverClusterMaster(s *Scene) {
	s.Helper()
	master := s.someMaster()
	for range 2 {
		s.broken("a master is replaced", func() {
			old := master
			s.losing("a replica takes over that lags", old, s.lost(s.slotsOf(old)), func() {
				s.cutOff(old)
				master = s.Cluster.Takeover(old)
				old.RefuseReplicas(false)
				s.Cluster.Await()
			})
		})
	}
}

// restartClusterMaster restarts a master, which comes back empty, and as a master:
// nobody is impatient with it meanwhile.
func restartClusterMaster(s *Scene) {
	s.Helper()
	master := s.someMaster()
	s.broken("a master is restarted", func() {
		s.during("a master comes back empty", s.slotsOf(master), func() {
			master.Restart()
			s.Cluster.Await()
		})
	})
}

// restartClusterReplica ends a node that no client needs, and brings it back.
func restartClusterReplica(s *Scene) {
	s.Helper()
	s.broken("a replica is restarted", func() {
		replica := s.Cluster.ReplicaOf(s.someMaster())
		replica.Kill()
		s.Crew.AwaitGrants(traffic)
		replica.Restart()
		s.Cluster.Await()
	})
}
