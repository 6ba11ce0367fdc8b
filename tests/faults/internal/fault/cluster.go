package fault

import "github.com/reqlock/reqlock/internal/testkit/redistest"

// clusterFaults returns the faults of the nodes and the slots of a Redis Cluster.
func clusterFaults() []Fault {
	// With this setting a dead master blocks only its own keys.
	partly := []string{"--cluster-require-full-coverage", "no"}
	// On OnClusterReplicas the replica has acknowledged each lease, so none is lost.
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

// someKey chooses the name of a lock.
func (s *System) someKey() string { return s.Keys[s.Random.IntN(len(s.Keys))] }

// someMaster chooses a master that owns a lock.
func (s *System) someMaster() *redistest.Server {
	s.Helper()
	return s.Cluster.MasterOf(s.someKey())
}

// killClusterMaster kills a master, which restarts as a replica. With withData, the master
// first gets writes that its replica does not have.
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
	s.disrupt("the old master restarts as a replica", func() {
		master.Restart()
		s.Cluster.Await()
	})
}

// stopClusterMaster pauses a master until it is replaced. When the master continues, it may
// serve commands until it learns that it is a replica.
func stopClusterMaster(s *System) {
	s.Helper()
	master := s.someMaster()
	s.pauseMaster(master, s.lossOf(s.slotsOf(master)), s.Cluster)
}

// switchClusterMaster makes a master and its replica exchange their roles, twice.
func switchClusterMaster(s *System) {
	s.Helper()
	master := s.someMaster()
	for range 2 {
		s.disrupt("a master and its replica change roles", func() { master = s.Cluster.Switch(master) })
	}
}

// takeOverClusterMaster makes a replica take over that lacks the last writes of its master,
// and then the old master in the same way.
func takeOverClusterMaster(s *System) {
	s.Helper()
	master := s.someMaster()
	for range 2 {
		s.disrupt("a master is replaced", func() {
			old := master
			s.replaceServing("a lagging replica takes over", old, s.lossOf(s.slotsOf(old)), func() {
				s.isolateMaster(old)
				master = s.Cluster.Takeover(old)
				old.RefuseReplicas(false)
				s.Cluster.Await()
			})
		})
	}
}

// restartClusterMaster restarts a master without its data. The restart is so fast that the
// node stays a master.
func restartClusterMaster(s *System) {
	s.Helper()
	master := s.someMaster()
	s.disrupt("a master is restarted", func() {
		s.during("a master restarts without data", s.slotsOf(master), func() {
			master.Restart()
			s.Cluster.Await()
		})
	})
}

// restartClusterReplica kills a replica and restarts it. No client uses it.
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
