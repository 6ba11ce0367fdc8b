package fault

import (
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// bothReplicas is the number of replicas of a master with Sentinels.
const bothReplicas = 2

// replicaFaults returns the faults of deployments whose replicas must acknowledge a lease.
// If all replicas do, no lease is lost with its master.
func replicaFaults() []Fault {
	sentinels, cluster := []Deployment{OnSentinelsReplicas}, []Deployment{OnClusterReplicas}
	// With this setting a dead master blocks only its own keys.
	partly := []string{"--cluster-require-full-coverage", "no"}
	return []Fault{
		{
			Name: "sentinel-master-killed-acknowledged", On: sentinels, Replicas: bothReplicas,
			Inject: func(s *System) { s.killAcknowledged(s.Sentinels.Master(), s.Sentinels, false) },
		},
		{
			Name: "sentinel-master-killed-with-its-data-acknowledged", On: sentinels, Replicas: bothReplicas,
			Inject: func(s *System) { s.killAcknowledged(s.Sentinels.Master(), s.Sentinels, true) },
		},
		{Name: "sentinel-master-stopped-acknowledged", On: sentinels, Replicas: bothReplicas, Inject: stopSentinelMaster},
		{Name: "sentinel-switch-acknowledged", On: sentinels, Replicas: bothReplicas, Inject: switchSentinelMaster},
		{
			Name: "sentinel-replica-stands-still", On: sentinels, Replicas: bothReplicas,
			Inject: repeat(2, func(s *System) {
				s.pauseReplicas(s.Sentinels, s.Sentinels.Replicas()[s.Random.IntN(bothReplicas)])
			}),
		},
		{
			Name: "sentinel-replicas-stand-still", On: sentinels,
			Inject: repeat(2, func(s *System) { s.pauseReplicas(s.Sentinels, s.Sentinels.Replicas()...) }),
		},
		{
			Name: "cluster-master-killed-acknowledged", On: cluster, Args: partly,
			Inject: func(s *System) { s.killAcknowledged(s.someMaster(), s.Cluster, false) },
		},
		{
			Name: "cluster-master-killed-with-its-data-acknowledged", On: cluster, Args: partly,
			Inject: func(s *System) { s.killAcknowledged(s.someMaster(), s.Cluster, true) },
		},
		{Name: "cluster-master-stopped-acknowledged", On: cluster, Args: partly, Inject: stopClusterMaster},
		{Name: "cluster-takeover-acknowledged", On: cluster, Args: partly, Inject: takeOverClusterMaster},
		{
			Name: "cluster-replicas-stand-still", On: cluster,
			Inject: repeat(2, func(s *System) {
				var replicas []*redistest.Server
				for _, master := range s.Cluster.Masters() {
					replicas = append(replicas, s.Cluster.ReplicaOf(master))
				}
				s.pauseReplicas(s.Cluster, replicas...)
			}),
		},
	}
}

// Replicated is what Sentinels and a Cluster have in common.
type replicated interface {
	AwaitFailover(master *redistest.Server) *redistest.Server
	Await()
}

// killAcknowledged kills a master whose replicas have acknowledged all leases. With
// withData, the master first gets writes that no replica has acknowledged. The new master
// has too few replicas until the old one is back.
func (s *System) killAcknowledged(master *redistest.Server, servers replicated, withData bool) {
	s.Helper()
	s.disrupt("a master is replaced", func() {
		s.during("a master is killed", s.lossOf(everything), func() {
			if withData {
				s.isolateMaster(master)
			}
			master.Kill()
		})
		alone := func() {
			servers.AwaitFailover(master)
			s.awaitProgress()
		}
		if s.Sentinels != nil { // a Cluster has other masters
			s.during(validate.NoGrants+": a replica is missing", nil, alone)
		} else {
			alone()
		}
		master.Restart()
		servers.Await()
	})
}

// pauseReplicas pauses replicas. Too few are left to acknowledge a lease of any key.
func (s *System) pauseReplicas(servers replicated, replicas ...*redistest.Server) {
	s.Helper()
	s.during("replicas are paused", nil, func() {
		for _, replica := range replicas {
			replica.Pause()
		}
		s.during(validate.NoGrants+": replicas do not acknowledge", nil, func() { s.runFor(1, 3) })
		for _, replica := range replicas {
			replica.Resume()
		}
		servers.Await()
	})
}
