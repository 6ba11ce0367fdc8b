package fault

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// An observer observes what a fault does to a deployment. It writes to the servers while
// the clients work, and compares the servers before and after each disruption.
type observer struct {
	*System
	servers      []*redistest.Server
	workload     *inProcessWorkload
	seen         map[observation]bool
	lossDeclared bool           // a disruption that loses data was declared
	confirmed    map[string]int // the last value that Redis has confirmed for each key
}

// An observation is an effect of a fault.
type observation string

const (
	roles  observation = "a server has become a master"
	ends   observation = "a server has ended"
	runs   observation = "a server has begun anew"
	owners observation = "a lock has another master"
	asks   observation = "a slot was on its way"
	losses observation = "what was confirmed is lost"
	splits observation = "two servers grant at a time"
	deaths observation = "a client has died"
	// grantsStopped means that no call was granted a lock that it requested during the
	// disruption.
	grantsStopped observation = "no lock was granted"
)

// A serverState is the observed state of a server.
type serverState struct {
	up, master bool
	run        string
	asked      string // how many redirections of a moving slot it has sent
}

func (w *observer) states() (views map[string]serverState, owned map[string]string) {
	views, owned = map[string]serverState{}, map[string]string{}
	for _, server := range w.servers {
		client := server.Client(w, func(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, time.Second })
		info, err := client.Info(w.Context(), "everything").Result()
		_ = client.Close()
		views[server.Addr()] = serverState{
			up: err == nil, master: strings.Contains(info, "role:master"), run: field(info, "run_id:"),
			asked: field(info, "errorstat_ASK:") + field(info, "errorstat_TRYAGAIN:"),
		}
	}
	if w.Cluster != nil {
		for _, key := range w.Keys {
			owned[key] = w.Cluster.MasterOf(key).Addr()
		}
	}
	return views, owned
}

func field(info, name string) string {
	_, value, _ := strings.Cut(info, "\n"+name)
	value, _, _ = strings.Cut(value, "\r\n")
	return value
}

// disrupt implements System.Disrupt. It compares the servers before and after a whole
// disruption. A declared loss is a part of one.
func (w *observer) disrupt(name string, lost Loss) (end func()) {
	began := time.Now()
	if lost != nil {
		w.lossDeclared = true
		return func() {}
	}
	before, owned := w.states()
	noGrants := strings.HasPrefix(name, validate.NoGrants)
	if noGrants {
		w.workload.startCounting()
	}
	return func() {
		if noGrants {
			w.workload.await("a call that is refused", func() bool { return w.workload.refused() > 0 })
			w.observe(grantsStopped, true)
			if n := w.workload.granted(); n > 0 {
				w.Errorf("%s, and %d were", name, n)
			}
		}
		after, owns := w.states()
		for addr, was := range before {
			is := after[addr]
			w.observe(roles, is.up && is.master && !was.master)
			w.observe(ends, was.up && !is.up)
			w.observe(runs, is.up && is.run != was.run)
			w.observe(asks, is.up && is.run == was.run && is.asked != was.asked)
		}
		w.observe(owners, !maps.Equal(owned, owns))
		w.Logf("%s, for %v", name, time.Since(began).Round(time.Millisecond))
	}
}

func (w *observer) observe(what observation, so bool) {
	if so {
		w.seen[what] = true
	}
}

func besideKey(key string) string { return "{" + key + "}:note" }

// writeBeside increments a counter beside each lock.
func (w *observer) writeBeside() {
	w.Helper()
	w.observe(splits, w.split())
	for _, key := range w.Keys {
		// without a master, no write is confirmed
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		if n, err := w.Admin.Incr(ctx, besideKey(key)).Result(); err == nil {
			w.observe(losses, int(n) <= w.confirmed[key])
			w.confirmed[key] = int(n)
		}
		cancel()
	}
}

// split reports whether two masters receive commands of locks at the same time.
func (w *observer) split() bool {
	if w.Sentinels == nil {
		return false
	}
	before := w.sets()
	if len(before) < 2 {
		return false
	}
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); pause(w.Context(), 20*time.Millisecond) {
		receiving := 0
		for addr, sets := range w.sets() {
			if sets != before[addr] {
				receiving++
			}
		}
		if receiving > 1 {
			return true
		}
	}
	return false
}

// sets returns the number of SET commands that each master has received.
func (w *observer) sets() map[string]string {
	sets := map[string]string{}
	for _, server := range w.servers {
		client := server.Client(w, func(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, time.Second })
		if info := client.Info(w.Context(), "everything").Val(); strings.Contains(info, "role:master") {
			calls, _, _ := strings.Cut(field(info, "cmdstat_set:"), ",")
			sets[server.Addr()] = calls
		}
		_ = client.Close()
	}
	return sets
}

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
