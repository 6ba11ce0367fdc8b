package fault

import (
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// clusterFaults returns the faults of the nodes and the slots of a Redis Cluster.
func clusterFaults() []Fault {
	// With this setting a dead master blocks only its own keys.
	partly := []string{"--cluster-require-full-coverage", "no"}
	// On OnClusterReplicas the replica has acknowledged each lease, so none is lost.
	unacknowledged := []Deployment{OnCluster}
	return on(onCluster(), []Fault{
		{Name: "cluster-master-killed", On: unacknowledged, Args: partly, Inject: func(s *System) { s.killClusterMaster(false) }},
		{Name: "cluster-master-killed-with-its-data", On: unacknowledged, Inject: func(s *System) { s.killClusterMaster(true) }},
		{Name: "cluster-master-stopped", On: unacknowledged, Args: partly, Inject: stopClusterMaster},
		{Name: "cluster-switch", Inject: switchClusterMaster},
		{Name: "cluster-takeover", On: unacknowledged, Inject: takeOverClusterMaster},
		{Name: "cluster-slot-moved", Inject: moveSlot},
		{Name: "cluster-slot-moved-slowly", Inject: func(s *System) { s.moveSlotSlowly(func() {}) }},
		{Name: "cluster-client-killed-amid-slot-move", Inject: killAmidMove},
		{Name: "cluster-master-restarted-empty", Args: partly, Inject: restartClusterMaster},
		{Name: "cluster-replica-restarted", Inject: restartClusterReplica},
	}...)
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

// moveCount is how often a slot is moved, back and forth.
const moveCount = 4

// moveSlot moves the slot of a lock away and back, without pauses.
func moveSlot(s *System) {
	s.Helper()
	key := s.someKey()
	from, to := s.slotMove(key)
	for range moveCount {
		s.disrupt("a slot moves", func() { s.Cluster.MoveSlot(key, to) })
		from, to = to, from
	}
}

// moveTime is how long the slow move of a slot takes.
const moveTime = time.Second

// moveSlotSlowly moves the slot of a lock. Meanwhile each of two masters has half of its
// keys. It calls amid in the middle of the move.
func (s *System) moveSlotSlowly(amid func()) {
	s.Helper()
	key := s.someKey()
	from, to := s.slotMove(key)
	s.disrupt("a slot moves slowly", func() {
		move := s.Cluster.BeginMove(key, to)
		if half := s.halfOfSlot(key, from); len(half) > 0 {
			move.Keys(half...)
		}
		s.sleep(moveTime / 2)
		amid()
		s.sleep(moveTime / 2)
		move.Finish()
	})
}

// halfOfSlot chooses half of the keys in the slot of a key, rounded up.
func (s *System) halfOfSlot(key string, master *redistest.Server) []string {
	s.Helper()
	client := master.Client(s)
	defer func() { _ = client.Close() }()
	keys, err := client.ClusterGetKeysInSlot(s.Context(), s.Cluster.Slot(key), 1000).Result()
	if err != nil {
		s.Fatalf("CLUSTER GETKEYSINSLOT of %s: %v", master.Addr(), err)
	}
	s.forkRandom().Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys[:(len(keys)+1)/2]
}

// killAmidMove kills a client process while a slot is moved.
func killAmidMove(s *System) {
	s.Helper()
	s.moveSlotSlowly(func() { s.Workload.Kill(s.someProcess()) })
}

// slotMove returns the master of the key, and another one.
func (s *System) slotMove(key string) (from, to *redistest.Server) {
	s.Helper()
	from = s.Cluster.MasterOf(key)
	for to = from; to == from; {
		masters := s.Cluster.Masters()
		to = masters[s.Random.IntN(len(masters))]
	}
	return from, to
}
