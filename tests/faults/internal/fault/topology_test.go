package fault

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Each fault has the effect that its name says on a real deployment, loses only the
// declared data, and leaves a healthy deployment.
func TestFaultsOfSeveralServers(t *testing.T) {
	for _, test := range []struct {
		on     Deployment
		faults []Fault
		wanted map[string][]observation // all observations of a fault
		fast   []string                 // these run in the fast tier, too
	}{
		{OnSentinels, sentinelFaults(), map[string][]observation{
			"sentinel-master-killed":               {roles, ends, runs},
			"sentinel-master-killed-with-its-data": {roles, ends, losses},

			"sentinel-master-killed-and-replaced-late": {roles, ends, losses},

			"sentinel-master-stopped":              {roles},
			"sentinel-switch":                      {roles},
			"sentinel-split":                       {roles, splits},
			"sentinel-master-restarted-empty":      {runs},
			"sentinel-client-killed-amid-failover": {roles, ends, deaths},
		}, []string{"sentinel-master-killed-with-its-data", "sentinel-split"}},
		{OnCluster, clusterFaults(), map[string][]observation{
			"cluster-master-killed":                {roles, ends, owners},
			"cluster-master-killed-with-its-data":  {roles, ends, owners, losses},
			"cluster-master-stopped":               {roles, owners},
			"cluster-switch":                       {roles, owners},
			"cluster-takeover":                     {roles, owners, losses},
			"cluster-slot-moved":                   {owners},
			"cluster-slot-moved-slowly":            {owners, asks},
			"cluster-client-killed-amid-slot-move": {owners, asks, deaths},
			"cluster-master-restarted-empty":       {runs},
			"cluster-replica-restarted":            {runs},
		}, []string{"cluster-takeover", "cluster-client-killed-amid-slot-move"}},
		{OnSentinelsReplicas, replicaFaults(), map[string][]observation{
			"sentinel-master-killed-acknowledged":               {roles, runs},
			"sentinel-master-killed-with-its-data-acknowledged": {roles, runs},
			"sentinel-master-stopped-acknowledged":              {roles},
			"sentinel-switch-acknowledged":                      {roles},
			"sentinel-replica-stands-still":                     {grantsStopped},
			"sentinel-replicas-stand-still":                     {grantsStopped},
		}, []string{"sentinel-master-killed-with-its-data-acknowledged", "sentinel-replica-stands-still"}},
		{OnClusterReplicas, replicaFaults(), map[string][]observation{
			"cluster-master-killed-acknowledged":               {roles, runs, owners},
			"cluster-master-killed-with-its-data-acknowledged": {roles, runs, owners},
			"cluster-master-stopped-acknowledged":              {roles, owners},
			"cluster-takeover-acknowledged":                    {roles, owners},
			"cluster-replicas-stand-still":                     {grantsStopped},
		}, []string{"cluster-takeover-acknowledged"}},
	} {
		t.Run(test.on.String(), func(t *testing.T) {
			t.Parallel()
			target := newTarget(t, test.on)
			for _, fault := range test.faults {
				if !slices.Contains(fault.On, test.on) {
					continue
				}
				t.Run(fault.Name, func(t *testing.T) {
					if !slices.Contains(test.fast, fault.Name) {
						suite.Full(t, "runs each fault of several servers")
					}
					awaitTurn(t)
					for _, on := range fault.On {
						if on.Kind() != test.on.Kind() {
							t.Errorf("it is one of %v", fault.On)
						}
					}
					target.inject(t, fault, test.wanted[fault.Name])
				})
			}
		})
	}
}

// A target is a deployment for faults.
type target struct {
	System
	on      Deployment
	servers []*redistest.Server
	connect func(testing.TB, dial) redis.UniversalClient
}

func newTarget(t *testing.T, on Deployment) *target {
	t.Helper()
	r := &target{on: on, System: System{Random: rand.New(rand.NewPCG(1, 2)), TTL: time.Second}}
	if on.Kind() == redistest.OnCluster {
		r.Cluster = redistest.StartCluster(t, "--cluster-require-full-coverage", "no")
		r.servers = r.Cluster.Nodes()
		r.connect = func(tb testing.TB, dial dial) redis.UniversalClient {
			return r.Cluster.Client(tb, func(o *redis.ClusterOptions) { o.Dialer, o.ContextTimeoutEnabled = dial, true })
		}
		return r
	}
	r.Sentinels = redistest.StartSentinel(t)
	r.servers = r.Sentinels.Servers()
	turn := 0
	r.connect = func(tb testing.TB, dial dial) redis.UniversalClient {
		turn++
		return r.Sentinels.Client(tb, func(o *redis.FailoverOptions) {
			// A client subscribes to the first Sentinel that answers. Each client here gets
			// another one.
			o.SentinelAddrs = o.SentinelAddrs[turn%3:][:1]
			o.Dialer, o.ContextTimeoutEnabled = dial, true
		})
	}
	return r
}

// inject injects a fault. The observer must make all wanted observations.
func (r *target) inject(t *testing.T, fault Fault, wanted []observation) {
	t.Helper()
	s := r.System
	s.TB = t
	var options []core.Option
	if r.on.CountsReplicas() {
		s.Replicas = max(1, fault.Replicas)
		options = append(options, core.WithReplicas(s.Replicas, testTTL/16))
	}
	s.Admin = r.connect(t, nil)
	var keys []string
	for i := range 6 {
		keys = append(keys, fmt.Sprintf("%s-%d", fault.Name, i))
		s.Keys = append(s.Keys, "reqlock:"+keys[i])
	}
	w := &observer{System: &s, servers: r.servers, seen: map[observation]bool{}, confirmed: map[string]int{}}
	workload := startWorkers(t, keys, r.connect, options...)
	workload.onGrants, w.workload = w.writeBeside, workload
	s.Workload, s.Disrupt = workload, w.disrupt

	fault.Inject(&s)

	for _, server := range r.servers {
		if err := server.Client(t).Ping(context.Background()).Err(); err != nil {
			t.Errorf("%s does not run: %v", server.Addr(), err)
		}
	}
	workload.awaitAll()
	w.observe(deaths, workload.deaths > 0)
	for _, what := range wanted {
		if !w.seen[what] {
			t.Errorf("not seen: %s", what)
		}
	}
	// Replicas need not acknowledge what the observer writes.
	if w.lossDeclared != fault.LosesData || w.seen[losses] && !fault.LosesData && s.Replicas == 0 {
		t.Errorf("declared to lose data: %v, by its disruptions %v, seen %v", fault.LosesData, w.lossDeclared, w.seen[losses])
	}
	if workload.overlaps > 0 && !fault.LosesData {
		t.Errorf("%d overlaps", workload.overlaps)
	}
	t.Logf("seen: %v, %d overlaps, %d grants", slices.Sorted(maps.Keys(w.seen)), workload.overlaps, workload.Grants())
}
