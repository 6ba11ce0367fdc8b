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
	"github.com/reqlock/reqlock/tests/faults/internal/check"
)

// A witness sees what a fault does to a deployment: it writes to the servers when the
// clients are at work, and looks at them when trouble begins and when it ends.
type witness struct {
	*Scene
	servers []*redistest.Server
	crew    *workers
	seen    map[sight]bool
	losing  bool           // a trouble that loses data was declared
	noted   map[string]int // what Redis has confirmed of each key
}

// A sight is something that a witness can see.
type sight string

const (
	roles  sight = "a server has become a master"
	ends   sight = "a server has ended"
	runs   sight = "a server has begun anew"
	owners sight = "a lock has another master"
	asked  sight = "a slot was on its way"
	losses sight = "what was confirmed is lost"
	splits sight = "two servers grant at a time"
	deaths sight = "a client has died"
	// silences is that nobody was granted anything that was asked for meanwhile.
	silences sight = "nobody was granted anything"
)

// A view is what a server is like.
type view struct {
	up, master bool
	run        string
	asked      string // how often it has sent clients elsewhere while a slot moved
}

func (w *witness) view() (views map[string]view, owned map[string]string) {
	views, owned = map[string]view{}, map[string]string{}
	for _, server := range w.servers {
		client := server.Client(w, func(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, time.Second })
		info, err := client.Info(w.Context(), "everything").Result()
		_ = client.Close()
		views[server.Addr()] = view{
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

// trouble is the Trouble of the scene. It looks at the servers before and after a
// whole replacement, of which a loss is a part.
func (w *witness) trouble(name string, lost Loss) (end func()) {
	began := time.Now()
	if lost != nil {
		w.losing = true
		return func() {}
	}
	before, owned := w.view()
	powerless := strings.HasPrefix(name, check.Powerless)
	if powerless {
		w.crew.watch()
	}
	return func() {
		if powerless {
			w.crew.await("a call that is refused", func() bool { return w.crew.unserved() > 0 })
			w.see(silences, true)
			if n := w.crew.served(); n > 0 {
				w.Errorf("%s, and %d were", name, n)
			}
		}
		after, owns := w.view()
		for addr, was := range before {
			is := after[addr]
			w.see(roles, is.up && is.master && !was.master)
			w.see(ends, was.up && !is.up)
			w.see(runs, is.up && is.run != was.run)
			w.see(asked, is.up && is.run == was.run && is.asked != was.asked)
		}
		w.see(owners, !maps.Equal(owned, owns))
		w.Logf("%s, for %v", name, time.Since(began).Round(time.Millisecond))
	}
}

func (w *witness) see(what sight, so bool) {
	if so {
		w.seen[what] = true
	}
}

func noteOf(key string) string { return "{" + key + "}:note" }

// note writes down something beside each lock.
func (w *witness) note() {
	w.Helper()
	w.see(splits, w.split())
	for _, key := range w.Keys {
		// Where there is no master at the moment, nothing is confirmed.
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		if n, err := w.Admin.Incr(ctx, noteOf(key)).Result(); err == nil {
			w.see(losses, int(n) <= w.noted[key])
			w.noted[key] = int(n)
		}
		cancel()
	}
}

// split reports whether two servers that take themselves for the master are told to
// set locks.
func (w *witness) split() bool {
	if w.Sentinels == nil {
		return false
	}
	before := w.sets()
	if len(before) < 2 {
		return false
	}
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); pause(w.Context(), 20*time.Millisecond) {
		told := 0
		for addr, sets := range w.sets() {
			if sets != before[addr] {
				told++
			}
		}
		if told > 1 {
			return true
		}
	}
	return false
}

// sets says how much the masters were told to set.
func (w *witness) sets() map[string]string {
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

// Each fault does to a real deployment what its name says, loses only what it
// declares, and leaves nothing behind.
func TestTopologies(t *testing.T) {
	for _, test := range []struct {
		on     Deployment
		faults []Fault
		wanted map[string][]sight // each of one row is seen
		short  []string
	}{
		{OnSentinels, sentinelFaults(), map[string][]sight{
			"sentinel-master-killed":               {roles, ends, runs},
			"sentinel-master-killed-with-its-data": {roles, ends, losses},
			"sentinel-master-stopped":              {roles},
			"sentinel-switch":                      {roles},
			"sentinel-split":                       {roles, splits},
			"sentinel-master-restarted-empty":      {runs},
			"sentinel-client-killed-amid-failover": {roles, ends, deaths},
		}, []string{"sentinel-master-killed-with-its-data", "sentinel-split"}},
		{OnCluster, clusterFaults(), map[string][]sight{
			"cluster-master-killed":                {roles, ends, owners},
			"cluster-master-killed-with-its-data":  {roles, ends, owners, losses},
			"cluster-master-stopped":               {roles, owners},
			"cluster-switch":                       {roles, owners},
			"cluster-takeover":                     {roles, owners, losses},
			"cluster-slot-moved":                   {owners},
			"cluster-slot-moved-slowly":            {owners, asked},
			"cluster-client-killed-amid-slot-move": {owners, asked, deaths},
			"cluster-master-restarted-empty":       {runs},
			"cluster-replica-restarted":            {runs},
		}, []string{"cluster-takeover", "cluster-client-killed-amid-slot-move"}},
		{OnSentinelsReplicas, replicaFaults(), map[string][]sight{
			"sentinel-master-killed-acknowledged":               {roles, runs},
			"sentinel-master-killed-with-its-data-acknowledged": {roles, runs},
			"sentinel-master-stopped-acknowledged":              {roles},
			"sentinel-switch-acknowledged":                      {roles},
			"sentinel-replica-stands-still":                     {silences},
			"sentinel-replicas-stand-still":                     {silences},
		}, []string{"sentinel-master-killed-with-its-data-acknowledged", "sentinel-replica-stands-still"}},
		{OnClusterReplicas, replicaFaults(), map[string][]sight{
			"cluster-master-killed-acknowledged":               {roles, runs, owners},
			"cluster-master-killed-with-its-data-acknowledged": {roles, runs, owners},
			"cluster-master-stopped-acknowledged":              {roles, owners},
			"cluster-takeover-acknowledged":                    {roles, owners},
			"cluster-replicas-stand-still":                     {silences},
		}, []string{"cluster-takeover-acknowledged"}},
	} {
		t.Run(test.on.String(), func(t *testing.T) {
			t.Parallel()
			stage := raise(t, test.on)
			for _, fault := range test.faults {
				if !slices.Contains(fault.On, test.on) {
					continue
				}
				if testing.Short() && !slices.Contains(test.short, fault.Name) {
					continue
				}
				t.Run(fault.Name, func(t *testing.T) {
					for _, on := range fault.On {
						if on.Kind() != test.on.Kind() {
							t.Errorf("it is one of %v", fault.On)
						}
					}
					stage.play(t, fault, test.wanted[fault.Name])
				})
			}
		})
	}
}

// raised is a deployment on which faults are played.
type raised struct {
	Scene
	on      Deployment
	servers []*redistest.Server
	connect func(testing.TB, dial) redis.UniversalClient
}

func raise(t *testing.T, on Deployment) *raised {
	t.Helper()
	r := &raised{on: on, Scene: Scene{Random: rand.New(rand.NewPCG(1, 2)), TTL: time.Second}}
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
			// The first that answers is listened to: here each has a turn.
			o.SentinelAddrs = o.SentinelAddrs[turn%3:][:1]
			o.Dialer, o.ContextTimeoutEnabled = dial, true
		})
	}
	return r
}

// play plays a fault in which the witness must see what is wanted.
func (r *raised) play(t *testing.T, fault Fault, wanted []sight) {
	t.Helper()
	s := r.Scene
	s.TB = t
	var options []core.Option
	if r.on.CountsReplicas() {
		s.Replicas = max(1, fault.Replicas)
		options = append(options, core.WithReplicas(s.Replicas, leaseOfATest/16))
	}
	s.Admin = r.connect(t, nil)
	var keys []string
	for i := range 6 {
		keys = append(keys, fmt.Sprintf("%s-%d", fault.Name, i))
		s.Keys = append(s.Keys, "reqlock:"+keys[i])
	}
	w := &witness{Scene: &s, servers: r.servers, seen: map[sight]bool{}, noted: map[string]int{}}
	crew := startWorkers(t, keys, r.connect, options...)
	crew.during, w.crew = w.note, crew
	s.Crew, s.Trouble = crew, w.trouble

	fault.Play(&s)

	for _, server := range r.servers {
		if err := server.Client(t).Ping(context.Background()).Err(); err != nil {
			t.Errorf("%s does not run: %v", server.Addr(), err)
		}
	}
	crew.awaitAll()
	w.see(deaths, crew.deaths > 0)
	for _, what := range wanted {
		if !w.seen[what] {
			t.Errorf("not seen: %s", what)
		}
	}
	// What a witness writes, no replica has to acknowledge.
	if w.losing != fault.Losing || w.seen[losses] && !fault.Losing && s.Replicas == 0 {
		t.Errorf("declared to lose data: %v, by its troubles %v, seen %v", fault.Losing, w.losing, w.seen[losses])
	}
	if crew.overlaps > 0 && !fault.Losing {
		t.Errorf("%d overlaps", crew.overlaps)
	}
	t.Logf("seen: %v, %d overlaps, %d grants", slices.Sorted(maps.Keys(w.seen)), crew.overlaps, crew.Grants())
}
