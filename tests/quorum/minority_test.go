package quorum

import (
	"sync"
	"testing"
	"time"
)

// Up to two nodes of five are ill, in all ways.
func TestAMajorityIsEnough(t *testing.T) {
	play(t, minorities(), someMinorities(), (*stage).minority)
}

// minority plays a row in which a majority is well.
func (s *stage) minority(t *testing.T, name string, r row) {
	s.awaitAllVotes(t, name+"-begin")
	crowd, waiters, burst := s.crowd(t), s.crowd(t), s.crowd(t)
	defer func() {
		burst.group.Wait()
		waiters.group.Wait()
		crowd.group.Wait()
	}()
	stop := make(chan struct{})
	leave := sync.OnceFunc(func() { close(stop) })
	defer leave()
	mend := sync.OnceFunc(func() { r.mend(s.nodes) })
	defer mend()

	old := s.processes[0].hold(t, name+"-old")
	s.awaitVotes(t, old)
	for _, p := range s.processes[1:] {
		for _, w := range []way{byLock, byHTTP} {
			waiters.group.Go(func() { waiters.lock(p, w, name+"-old") })
		}
		await(t, "two wait", func() bool { return p.waited(name+"-old") == 2 })
	}
	crowd.keepOn(name+"-crowd", stop)
	burst.all(name+"-burst", ways()...)
	r.strike(s.nodes)
	struck := time.Now()

	burst.group.Wait()
	burst.all(name+"-ill", ways()...)
	young := s.processes[1].hold(t, name+"-young")
	burst.group.Wait()
	old.awaitRenewal(t, struck)
	if err := old.end(); err != nil {
		t.Errorf("release of the old lease: %v", err)
	}
	waiters.group.Wait()

	mend()
	s.awaitVotes(t, young)
	burst.all(name+"-mended", ways()...)
	burst.group.Wait()
	young.wantKept(t)
	if err := young.end(); err != nil {
		t.Errorf("release of the young lease: %v", err)
	}
	s.awaitFree(t, name+"-young")
	leave()
	crowd.group.Wait()
	s.history.judge(t)
}
