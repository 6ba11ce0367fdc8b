package quorum

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// Three nodes of five are ill, or more.
func TestWithoutAMajorityNobodyGetsALock(t *testing.T) {
	play(t, majorities(), someMajorities(), (*stage).majority)
}

// majority plays a row in which no majority is well.
func (s *stage) majority(t *testing.T, name string, r row) {
	mend := sync.OnceFunc(func() { r.mend(s.nodes) })
	defer mend()
	old := s.processes[0].hold(t, name+"-old")
	s.awaitVotes(t, old)
	before := time.Now()
	r.strike(s.nodes)
	// A node that came back votes when its quarantine is over.
	mayVote := func() bool { return size-r.lasting() >= majority && time.Since(before) > ttl }

	var asking sync.WaitGroup
	for _, p := range s.processes {
		for _, key := range []string{name + "-old", name + "-new"} {
			if p == s.processes[0] && key == name+"-old" {
				continue // who needs no Redis to know that it is busy
			}
			asking.Go(func() {
				lease, err := p.locks.TryLock(t.Context(), key)
				wantUnavailable(t, p.name+": TryLock "+key, lease, err, mayVote)
				lease, err = p.locks.With(core.WithWait(ttl/4)).Lock(t.Context(), key)
				wantUnavailable(t, p.name+": Lock "+key, lease, err, mayVote)
			})
			asking.Go(func() {
				want := answer{http.StatusServiceUnavailable, "application/problem+json", "1", "unavailable"}
				got, err := p.post("/try", p.name, key)
				if (err != nil || got != want) && !mayVote() {
					t.Errorf("%s: %s over HTTP: %+v, %v", p.name, key, got, err)
				}
			})
		}
	}
	asking.Wait()
	await(t, "the holder is told", func() bool { return old.told.Load() != nil })
	if cause := context.Cause(old.lease.Context()); !errors.Is(cause, core.ErrLost) {
		t.Errorf("the holder is told %v", cause)
	}
	until := old.lease.ValidUntil()
	if late := old.told.Load().Sub(until); late > ttl/2 && !old.process.pulse.wasAway(until) {
		t.Errorf("the holder is told %v after its end", late)
	}
	if err := old.end(); !errors.Is(err, core.ErrLost) {
		t.Errorf("release of a lost lease: %v", err)
	}

	mend()
	all := s.crowd(t)
	all.all(name+"-old", byLock, byDo, byHTTP)
	all.all(name+"-mended", byLock, byDo, byHTTP)
	all.group.Wait()
	s.awaitAllVotes(t, name+"-young")
	s.history.judge(t)
}

// wantUnavailable fails the test with the answer to a call for which there was no
// majority, unless there may have been one.
func wantUnavailable(t *testing.T, what string, lease *core.Lease, err error, mayVote func() bool) {
	t.Helper()
	excused := mayVote()
	_ = lease.Release(context.Background())
	if (!errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrBusy)) && !excused {
		t.Errorf("%s: %v", what, err)
	}
}
