package fault

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

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
			suite.Eventually(w, "a call that is refused", func() bool { return w.workload.refused() > 0 })
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
