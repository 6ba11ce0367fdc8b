package failover

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

const (
	restartKeys      = 12 // of locks, over all masters
	restartProcesses = 3
	clientsOfKey     = 2
	restartWait      = 2 * time.Second
	// requestPause is the pause of a client between two requests.
	requestPause = 5 * time.Millisecond
)

// A rollingRestart is a restart of all servers, one after the other, under load.
type rollingRestart struct {
	*deployment
	t        *testing.T
	ledger   *ledger
	services []*service
	keys     []string
	steps    []step

	stop      chan struct{}
	clients   sync.WaitGroup
	answers   counter // all answers, by their codes
	successes counter // of each key
	effects   counter // the idempotent requests, by the number of their effects
	lost      int64   // effects under locks
}

// switchover is the step in which a master is replaced.
const switchover = "a master and a replica change roles"

// A step is what was done to one server.
type step struct {
	name     string
	from, to int64
}

// do does one step, and returns when the deployment is healthy.
func (r *rollingRestart) do(name string, action func()) {
	from := clock.Now()
	action()
	r.await()
	r.steps = append(r.steps, step{name, from, clock.Now()})
}

func (r *rollingRestart) restart() {
	masters := r.masters()
	for _, master := range masters {
		for _, replica := range r.replicasOf(master) {
			r.do("a replica restarts", replica.RestartWithData)
		}
		r.do(switchover, func() { r.switchFrom(master) })
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

func (r *rollingRestart) startClients() {
	masters := r.masters()
	for _, master := range masters {
		for _, key := range r.keysAt(master, "restart", restartKeys/len(masters)) {
			r.keys = append(r.keys, key)
			for c := range clientsOfKey {
				n := len(r.keys) + c
				r.clients.Go(func() { r.sendLocked(n, key) })
			}
			n := len(r.keys)
			r.clients.Go(func() { r.sendIdempotent(n, key) })
		}
	}
	r.awaitRuns(clock.Now())
}

func (r *rollingRestart) awaitRuns(after int64) {
	for _, key := range r.keys {
		suite.Eventually(r.t, "requests run", func() bool {
			runs := r.ledger.of(key)
			return len(runs) > 0 && runs[len(runs)-1].At > after
		})
	}
}

// send sends a request to one of the processes, and counts the answer.
func (r *rollingRestart) send(n, i int, q request) answer {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	q.id = fmt.Sprintf("%s-%d-%d", q.key, n, i)
	a := r.services[(n+i)%restartProcesses].send(ctx, n%2 == 0, q)
	if violation := a.violation(q, r.ledger.of(q.key)); violation != "" {
		r.t.Errorf("%s: %s", q.id, violation)
	}
	switch {
	case a.isReplayed:
		r.answers.add("replayed")
	case a.isOK():
		r.answers.add("ok")
	default:
		r.answers.add(a.code)
	}
	return a
}

// pauseAndContinue pauses, and reports whether the client continues.
func (r *rollingRestart) pauseAndContinue() bool {
	select {
	case <-r.stop:
		return false
	case <-time.After(requestPause):
		return true
	}
}

func (r *rollingRestart) sendLocked(n int, key string) {
	for i := 0; ; i++ {
		if r.send(n, i, request{key: key}).isOK() {
			r.successes.add(key)
		}
		if !r.pauseAndContinue() {
			return
		}
	}
}

func (r *rollingRestart) sendIdempotent(n int, key string) {
	for i, serial := 0, 0; ; serial++ {
		q := request{isIdempotent: true, key: fmt.Sprintf("idempotent-%s-%d", key, serial)}
		for {
			i++
			a := r.send(n, i, q)
			if a.isOK() || a.code == outcomeUnknown {
				effects := len(r.ledger.of(q.key))
				r.effects.add(fmt.Sprintf("%d effects", effects))
				if effects > 1 && r.cluster != nil || effects != 1 && a.isOK() && r.cluster != nil {
					r.t.Errorf("%s had %d effects: %v", q.key, effects, a)
				}
				break
			}
			if !r.pauseAndContinue() {
				return
			}
		}
		if !r.pauseAndContinue() {
			return
		}
	}
}

// checkEffects fails the test unless each success has had its effect on what the lock
// guards.
//
// While the sentinels replace a master there are two masters, and each may grant a lock.
// No holder can be informed, because its lease begins and ends at its own master. Only in
// that time may two runs overlap, and only this many effects may be lost.
func (r *rollingRestart) checkEffects() {
	for _, key := range r.keys {
		value, overlaps := r.ledger.count(key)
		successes := int64(r.successes.of(key))
		switch {
		case len(overlaps) == 0 && value == successes:
			continue
		case r.cluster != nil, value > successes, value < successes-int64(len(overlaps)):
			r.t.Errorf("%s: %d successes, the counter is %d, and runs overlapped %d times", key, successes, value, len(overlaps))
		}
		r.lost += successes - value
		for _, at := range overlaps {
			if !r.isSwitchover(at) {
				r.t.Errorf("%s: two runs overlapped at %v, when there was one master", key, at)
			}
		}
	}
}

func (r *rollingRestart) isSwitchover(at int64) bool {
	return slices.ContainsFunc(r.steps, func(s step) bool {
		return s.name == switchover && at > s.from && at < s.to
	})
}

// report lists the answers, and how long each step took.
func (r *rollingRestart) report() string {
	text := fmt.Sprintf("answers: %v; idempotent requests: %v; %d effects lost", &r.answers, &r.effects, r.lost)
	for _, s := range r.steps {
		text += fmt.Sprintf("\n%8v: %s", time.Duration(s.to-s.from).Round(time.Millisecond), s.name)
	}
	return text
}

// All servers are restarted, one after the other. Clients wait, and see no errors besides
// the documented outcomes.
func TestServersAreRestartedUnderLoad(t *testing.T) {
	parallelInFastTier(t)
	for deployed, start := range deployments {
		t.Run(deployed, func(t *testing.T) {
			t.Parallel()
			suite.Full(t, "restarts all servers, one after the other")
			d := start(t)
			r := &rollingRestart{deployment: d, ledger: newLedger(), stop: make(chan struct{})}
			t.Run("restart", func(t *testing.T) {
				r.t = t
				for n := range restartProcesses {
					p := newProcess(t, d.client(t, n, nil), core.WithTTL(2*shortTTL))
					r.services = append(r.services, newService(t, p, r.ledger, restartWait))
				}
				end := sync.OnceFunc(func() {
					close(r.stop)
					r.clients.Wait()
				})
				defer end() // also if the test fails before
				r.startClients()
				r.restart()
				r.awaitRuns(clock.Now())
				end()
				r.checkEffects()
			})
			d.checkLeftovers(t)
			t.Logf("%s: %s", deployed, r.report())
		})
	}
}
