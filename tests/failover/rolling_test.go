package failover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

const (
	rollingKeys      = 12 // of locks, over all masters
	rollingProcesses = 3
	rollingClients   = 2 // of each key
	rollingWait      = 2 * time.Second
	// thinks is how long a client does nothing between two requests.
	thinks = 5 * time.Millisecond
)

// A rolling is a restart of all servers, one after the other, under load.
type rolling struct {
	*deployment
	t        *testing.T
	ledger   *ledger
	services []*service
	keys     []string
	steps    []step

	stop    chan struct{}
	clients sync.WaitGroup
	codes   tally // of all answers
	fine    tally // the successes of each key
	again   tally // the requests that take effect once, by their effects
	lost    int64 // effects under locks
}

// switches is the step in which a master is replaced.
const switches = "a master and a replica change roles"

// A step is what was done to one server.
type step struct {
	name     string
	from, to time.Time
}

// do does one step, at the end of which all is healthy.
func (r *rolling) do(name string, what func()) {
	from := time.Now()
	what()
	r.await()
	r.steps = append(r.steps, step{name, from, time.Now()})
}

// restart restarts all servers. A master changes roles before.
func (r *rolling) restart() {
	masters := r.masters()
	for _, master := range masters {
		for _, replica := range r.replicasOf(master) {
			r.do("a replica restarts", replica.RestartWithData)
		}
		r.do(switches, func() { r.switchFrom(master) })
		r.do("the old master restarts", master.RestartWithData)
	}
	if r.sentinels != nil {
		for _, sentinel := range r.sentinels.Sentinels() {
			r.do("a sentinel restarts", sentinel.RestartWithData)
		}
	}
}

func (d *deployment) replicasOf(master *redistest.Server) []*redistest.Server {
	if d.cluster != nil {
		return []*redistest.Server{d.cluster.ReplicaOf(master)}
	}
	return d.sentinels.Replicas()
}

// load starts the clients.
func (r *rolling) load() {
	masters := r.masters()
	for _, master := range masters {
		for _, key := range r.keysAt(master, "rolling", rollingKeys/len(masters)) {
			r.keys = append(r.keys, key)
			for c := range rollingClients {
				n := len(r.keys) + c
				r.clients.Go(func() { r.sendLocked(n, key) })
			}
			n := len(r.keys)
			r.clients.Go(func() { r.sendOnce(n, key) })
		}
	}
	r.awaitRuns(time.Now())
}

// awaitRuns returns when requests for all keys have run after that time.
func (r *rolling) awaitRuns(after time.Time) {
	for _, key := range r.keys {
		await(r.t, "requests run", func() bool {
			runs := r.ledger.of(key)
			return len(runs) > 0 && runs[len(runs)-1].began.After(after)
		})
	}
}

// send sends a request to one of the processes, and counts the answer.
func (r *rolling) send(n, i int, q question) answer {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	q.request = fmt.Sprintf("%s-%d-%d", q.key, n, i)
	a := r.services[(n+i)%rollingProcesses].ask(ctx, n%2 == 0, q)
	if fault := a.fault(q, r.ledger.of(q.key)); fault != "" {
		r.t.Errorf("%s: %s", q.request, fault)
	}
	switch {
	case a.replayed:
		r.codes.add("replayed")
	case a.fine():
		r.codes.add("fine")
	default:
		r.codes.add(a.code)
	}
	return a
}

// goesOn waits a little, and reports whether there is more to send.
func (r *rolling) goesOn() bool {
	select {
	case <-r.stop:
		return false
	case <-time.After(thinks):
		return true
	}
}

// sendLocked sends request after request for a lock.
func (r *rolling) sendLocked(n int, key string) {
	for i := 0; ; i++ {
		if r.send(n, i, question{key: key}).fine() {
			r.fine.add(key)
		}
		if !r.goesOn() {
			return
		}
	}
}

// sendOnce sends requests that take effect once, each until its end is known.
func (r *rolling) sendOnce(n int, key string) {
	for i, serial := 0, 0; ; serial++ {
		q := question{once: true, key: fmt.Sprintf("once-%s-%d", key, serial)}
		for {
			i++
			a := r.send(n, i, q)
			if a.fine() || a.code == "outcome_unknown" {
				effects := len(r.ledger.of(q.key))
				r.again.add(fmt.Sprintf("%d effects", effects))
				if effects > 1 && r.cluster != nil || effects != 1 && a.fine() && r.cluster != nil {
					r.t.Errorf("%s had %d effects: %v", q.key, effects, a)
				}
				break
			}
			if !r.goesOn() {
				return
			}
		}
		if !r.goesOn() {
			return
		}
	}
}

// wantExact fails the test unless each success has had its effect on what the lock
// protects.
//
// While the sentinels replace a master there are two of them, and each may grant a
// lock. Nobody can tell the holders, whose leases begin and end at their masters.
// Only then may two have been inside, and only so many effects may be lost.
func (r *rolling) wantExact() {
	for _, key := range r.keys {
		value, meetings := r.ledger.counted(key)
		fine := int64(r.fine.of(key))
		switch {
		case len(meetings) == 0 && value == fine:
			continue
		case r.cluster != nil, value > fine, value < fine-int64(len(meetings)):
			r.t.Errorf("%s: %d successes, the counter is %d, %d times two were inside", key, fine, value, len(meetings))
		}
		r.lost += fine - value
		for _, at := range meetings {
			if !r.switching(at) {
				r.t.Errorf("%s: two were inside at %v, when there was one master", key, at)
			}
		}
	}
}

// switching reports whether a master was being replaced at that time.
func (r *rolling) switching(at time.Time) bool {
	return slices.ContainsFunc(r.steps, func(s step) bool {
		return s.name == switches && at.After(s.from) && at.Before(s.to)
	})
}

// report returns the table of the steps.
func (r *rolling) report() string {
	table := []string{fmt.Sprintf("answers: %v; requests that take effect once: %v; %d effects lost", &r.codes, &r.again, r.lost)}
	for _, s := range r.steps {
		longest := time.Duration(0)
		for _, key := range r.keys {
			runs := r.ledger.of(key)
			for i := 1; i < len(runs); i++ {
				if runs[i].began.After(s.from) && runs[i-1].began.Before(s.to) {
					longest = max(longest, runs[i].began.Sub(runs[i-1].began))
				}
			}
		}
		table = append(table, fmt.Sprintf("%8v, the longest gap %8v: %s", round(s.to.Sub(s.from)), round(longest), s.name))
	}
	return strings.Join(table, "\n")
}

// All servers are restarted, one after the other, and clients notice waits and
// nothing else.
func TestServersAreRestartedUnderLoad(t *testing.T) {
	for deployed, start := range deployments {
		t.Run(deployed, func(t *testing.T) {
			t.Parallel()
			d := start(t)
			r := &rolling{deployment: d, ledger: newLedger(), stop: make(chan struct{})}
			t.Run("restart", func(t *testing.T) {
				r.t = t
				for n := range rollingProcesses {
					p := newProcess(t, d.client(t, n, nil), core.WithTTL(2*shortTTL))
					r.services = append(r.services, newService(t, p, r.ledger, rollingWait))
				}
				end := sync.OnceFunc(func() {
					close(r.stop)
					r.clients.Wait()
				})
				defer end() // also where the test is broken off
				r.load()
				r.restart()
				r.awaitRuns(time.Now())
				end()
				r.wantExact()
			})
			d.wantTidy(t)
			t.Logf("%s: %s", deployed, r.report())
		})
	}
}
