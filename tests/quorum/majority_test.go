package quorum

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestAMajorityIsEnough(t *testing.T) {
	t.Parallel()
	runRows(t, minorities(), someMinorities(), 2, (*deployment).testMinority)
}

func (d *deployment) testMinority(t *testing.T, name string, r row) {
	d.awaitAllVotes(t, name+"-begin")
	steady, waiters, burst := d.callers(t), d.callers(t), d.callers(t)
	defer func() {
		burst.group.Wait()
		waiters.group.Wait()
		steady.group.Wait()
	}()
	stop := make(chan struct{})
	end := sync.OnceFunc(func() { close(stop) })
	defer end()
	repair := sync.OnceFunc(func() { r.repair(d.nodes) })
	defer repair()

	old := d.processes[0].hold(t, name+"-old")
	d.awaitVotes(t, old)
	for _, p := range d.processes[1:] {
		for _, m := range []method{byLock, byHTTP} {
			waiters.group.Go(func() { waiters.lock(p, m, name+"-old") })
		}
		suite.Eventually(t, "two callers wait", func() bool { return p.waiters(name+"-old") == 2 })
	}
	steady.lockUntil(stop, name+"-steady")
	burst.lockByEach(name+"-burst", methods()...)
	r.inject(d.nodes)
	injected := time.Now()

	burst.group.Wait()
	burst.lockByEach(name+"-faulty", methods()...)
	recent := d.processes[1].hold(t, name+"-recent")
	burst.group.Wait()
	old.awaitRenewal(t, injected)
	if err := old.release(); err != nil {
		t.Errorf("release of the old lease: %v", err)
	}
	waiters.group.Wait()

	repair()
	d.awaitVotes(t, recent)
	burst.lockByEach(name+"-repaired", methods()...)
	burst.group.Wait()
	recent.wantValid(t)
	if err := recent.release(); err != nil {
		t.Errorf("release of the recent lease: %v", err)
	}
	d.awaitFree(t, name+"-recent")
	end()
	steady.group.Wait()
	checkHistory(t, d.history)
}

func TestWithoutAMajorityNoCallerGetsALock(t *testing.T) {
	t.Parallel()
	runRows(t, majorities(), someMajorities(), 1, (*deployment).testMajority)
}

// testMajority runs a row in which no majority of the nodes works.
func (d *deployment) testMajority(t *testing.T, name string, r row) {
	repair := sync.OnceFunc(func() { r.repair(d.nodes) })
	defer repair()
	old := d.processes[0].hold(t, name+"-old")
	d.awaitVotes(t, old)
	before := time.Now()
	r.inject(d.nodes)
	// A restarted node votes after its quarantine.
	mayVote := func() bool { return nodeCount-r.permanent() >= majority && time.Since(before) > ttl }

	var calls sync.WaitGroup
	for _, p := range d.processes {
		for _, key := range []string{name + "-old", name + "-new"} {
			if p == d.processes[0] && key == name+"-old" {
				continue // the holder's process finds the key busy without Redis
			}
			calls.Go(func() {
				lease, err := p.locks.TryLock(t.Context(), key)
				wantUnavailable(t, p.name+": TryLock "+key, lease, err, mayVote)
				lease, err = p.locks.With(core.WithWait(ttl/4)).Lock(t.Context(), key)
				wantUnavailable(t, p.name+": Lock "+key, lease, err, mayVote)
			})
			calls.Go(func() {
				want := answer{http.StatusServiceUnavailable, "application/problem+json", "1", "unavailable"}
				got, err := p.post("/try", p.name, key)
				if (err != nil || got != want) && !mayVote() {
					t.Errorf("%s: %s over HTTP: %+v, %v", p.name, key, got, err)
				}
			})
		}
	}
	calls.Wait()
	old.awaitLoss(t)
	if cause := context.Cause(old.Context()); !errors.Is(cause, core.ErrLost) {
		t.Errorf("the lease of the holder ended by %v", cause)
	}
	// A timer of this process may fire late: by half of a TTL, and by the time in which the
	// machine did not run the process.
	until := old.ValidUntil()
	if late := old.LostAt().Sub(until); late > ttl/2+old.process.stalls.lateSince(until) {
		t.Errorf("the holder is informed %v after the end of its lease", late)
	}
	if err := old.release(); !errors.Is(err, core.ErrLost) {
		t.Errorf("release of a lost lease: %v", err)
	}

	repair()
	d.awaitNewCallers(t, name+"-repaired")
	all := d.callers(t)
	all.lockByEach(name+"-old", byLock, byDo, byHTTP)
	all.lockByEach(name+"-repaired", byLock, byDo, byHTTP)
	all.group.Wait()
	d.awaitAllVotes(t, name+"-recent")
	checkHistory(t, d.history)
}

// awaitNewCallers returns once no process refuses new callers at once, as WithFailFast does
// after a long outage, until a probe has found, at most half a second later, that the servers
// are back. Callers may still have to wait for the quarantine of a server.
func (d *deployment) awaitNewCallers(t *testing.T, key string) {
	t.Helper()
	for _, p := range d.processes {
		suite.Eventually(t, p.name+" lets new callers wait", func() bool {
			lease, err := p.locks.TryLock(t.Context(), key)
			_ = lease.Release(context.Background())
			return err == nil || !strings.Contains(err.Error(), "no command was served")
		})
	}
}

// wantUnavailable fails the test if a call that had no majority got another error. A
// majority may have formed meanwhile: mayVote reports that.
func wantUnavailable(t *testing.T, call string, lease *core.Lease, err error, mayVote func() bool) {
	t.Helper()
	hadMajority := mayVote()
	_ = lease.Release(context.Background())
	if (!errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrBusy)) && !hadMajority {
		t.Errorf("%s: %v", call, err)
	}
}
