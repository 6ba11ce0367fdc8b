package quorum

import (
	"sync"
	"testing"
	"time"

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
