package fault

import (
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// bothReplicas is how many a master has that Sentinels watch.
const bothReplicas = 2

// replicaFaults are those of servers whose clients count on a lease only once replicas
// have acknowledged it. Where all of them have, none is lost with its master.
func replicaFaults() []Fault {
	sentinels, cluster := []Deployment{OnSentinelsReplicas}, []Deployment{OnClusterReplicas}
	// With it a dead master holds up no keys but its own.
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

// replicated is what Sentinels and a Cluster have in common.
type replicated interface {
	AwaitFailover(master *redistest.Server) *redistest.Server
	Await()
}

// killAcknowledged kills a master whose replicas have acknowledged all that counts; if told so,
// after it alone was told something, which does not count. The one that takes over has
// too few replicas until the old one is back as one of them.
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
		if s.Sentinels != nil { // in a Cluster there are other masters
			s.during(validate.NoGrants+": a replica is missing", nil, alone)
		} else {
			alone()
		}
		master.Restart()
		servers.Await()
	})
}

// pauseReplicas makes so many replicas stand still that none is left whom a lease needs, for
// each key.
func (s *System) pauseReplicas(servers replicated, replicas ...*redistest.Server) {
	s.Helper()
	s.during("replicas stand still", nil, func() {
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
