package fault

import "github.com/reqlock/reqlock/internal/testkit/redistest"

// clusterFaults are those of the nodes of a Redis Cluster, and of its slots.
func clusterFaults() []Fault {
	// With it a dead master holds up no keys but its own.
	partly := []string{"--cluster-require-full-coverage", "no"}
	// What the only replica has acknowledged is not lost with its master.
	unacknowledged := []Deployment{OnCluster}
	faults := []Fault{
		{Name: "cluster-master-killed", On: unacknowledged, LosesData: true, Args: partly, Inject: func(s *System) { s.killClusterMaster(false) }},
		{Name: "cluster-master-killed-with-its-data", On: unacknowledged, LosesData: true, Inject: func(s *System) { s.killClusterMaster(true) }},
		{Name: "cluster-master-stopped", On: unacknowledged, LosesData: true, Args: partly, Inject: stopClusterMaster},
		{Name: "cluster-switch", Inject: switchClusterMaster},
		{Name: "cluster-takeover", On: unacknowledged, LosesData: true, Inject: takeOverClusterMaster},
		{Name: "cluster-slot-moved", Inject: moveSlot},
		{Name: "cluster-slot-moved-slowly", Inject: func(s *System) { s.moveSlotSlowly(func() {}) }},
		{Name: "cluster-client-killed-amid-slot-move", Inject: killAmidMove},
		{Name: "cluster-master-restarted-empty", LosesData: true, Args: partly, Inject: restartClusterMaster},
		{Name: "cluster-replica-restarted", Inject: restartClusterReplica},
	}
	for i := range faults {
		if faults[i].On == nil {
			faults[i].On = onCluster()
		}
	}
	return faults
}

// someKey chooses a lock.
func (s *System) someKey() string { return s.Keys[s.Random.IntN(len(s.Keys))] }

// someMaster chooses a master that has a lock.
func (s *System) someMaster() *redistest.Server {
	s.Helper()
	return s.Cluster.MasterOf(s.someKey())
}

// killClusterMaster kills a master, if told so with what it alone knew. It comes
// back as a replica.
func (s *System) killClusterMaster(withData bool) {
	s.Helper()
	master := s.someMaster()
	s.disrupt("a master is replaced", func() {
		s.during("a master is killed", s.lossOf(s.slotsOf(master)), func() {
			if withData {
				s.isolateMaster(master)
			}
			master.Kill()
		})
		s.Cluster.AwaitFailover(master)
	})
	s.disrupt("the old master comes back as a replica", func() {
		master.Restart()
		s.Cluster.Await()
	})
}

// stopClusterMaster makes a master stand still until it is replaced. When it goes on
// it may do what it was told meanwhile, until it hears that it is a replica.
func stopClusterMaster(s *System) {
	s.Helper()
	master := s.someMaster()
	s.pauseMaster(master, s.lossOf(s.slotsOf(master)), s.Cluster)
}

// switchClusterMaster makes a master and its replica change roles, and back.
func switchClusterMaster(s *System) {
	s.Helper()
	master := s.someMaster()
	for range 2 {
		s.disrupt("a master and its replica change roles", func() { master = s.Cluster.Switch(master) })
	}
}

// takeOverClusterMaster makes a replica take over that does not know what its
// master was told last, and then the other one likewise.
func takeOverClusterMaster(s *System) {
	s.Helper()
	master := s.someMaster()
	for range 2 {
		s.disrupt("a master is replaced", func() {
			old := master
			s.replaceServing("a replica takes over that lags", old, s.lossOf(s.slotsOf(old)), func() {
				s.isolateMaster(old)
				master = s.Cluster.Takeover(old)
				old.RefuseReplicas(false)
				s.Cluster.Await()
			})
		})
	}
}

// restartClusterMaster restarts a master, which comes back empty, and as a master:
// nobody is impatient with it meanwhile.
func restartClusterMaster(s *System) {
	s.Helper()
	master := s.someMaster()
	s.disrupt("a master is restarted", func() {
		s.during("a master comes back empty", s.slotsOf(master), func() {
			master.Restart()
			s.Cluster.Await()
		})
	})
}

// restartClusterReplica ends a node that no client needs, and brings it back.
func restartClusterReplica(s *System) {
	s.Helper()
	s.disrupt("a replica is restarted", func() {
		replica := s.Cluster.ReplicaOf(s.someMaster())
		replica.Kill()
		s.Workload.AwaitGrants(someGrants)
		replica.Restart()
		s.Cluster.Await()
	})
}
