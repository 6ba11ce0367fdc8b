package quorum

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A client that follows the classic recipe on a majority of the nodes is excluded
// by a quorum that holds the lock, and excludes it.
func TestAQuorumAndAClassicClientExcludeEachOther(t *testing.T) {
	t.Parallel()
	const key = "k"
	s := newStage(t, 1)
	p := s.processes[0]
	s.awaitAllVotes(t, "begin")

	ours := p.hold(t, key)
	s.awaitVotes(t, ours)
	if set := s.nodes.set(t, key, theirToken, time.Minute); set != 0 {
		t.Errorf("the classic client has %d nodes while the quorum holds the lock", set)
	}
	if err := ours.end(); err != nil {
		t.Errorf("release: %v", err)
	}
	s.awaitFree(t, key)

	theirs := s.nodes[1 : 1+majority]
	if set := theirs.set(t, key, theirToken, time.Minute); set != majority {
		t.Fatalf("the classic client has %d nodes", set)
	}
	asked := time.Now()
	if lease, err := p.locks.TryLock(t.Context(), key); !errors.Is(err, core.ErrBusy) && !p.excused(err, asked) {
		_ = lease.Release(context.Background())
		t.Errorf("the classic client holds the lock, and TryLock returns %v", err)
	}
	// For longer than a command may take: who has not heard by then that it is held does
	// not know whether it is.
	asked = time.Now()
	if lease, err := p.locks.With(core.WithWait(ttl/2)).Lock(t.Context(), key); !errors.Is(err, core.ErrWaitTimeout) && !p.excused(err, asked) {
		_ = lease.Release(context.Background())
		t.Errorf("the classic client holds the lock, and Lock returns %v", err)
	}
	before := p.waited(key)
	waiter := s.crowd(t)
	waiter.group.Go(func() { waiter.lock(p, byLock, key) })
	await(t, "one waits for the classic client", func() bool { return p.waited(key) > before })
	if votes := theirs.votes(t, key, theirToken); votes != majority {
		t.Errorf("the classic client has %d nodes left", votes)
	}
	theirs.drop(t, key)
	waiter.group.Wait()
}

// Whoever has a minority of the nodes holds nothing, and is left alone.
func TestAMinorityOfVotesExcludesNobody(t *testing.T) {
	t.Parallel()
	const key = "k"
	s := newStage(t, 1)
	s.awaitAllVotes(t, "begin")
	theirs := s.nodes[majority:]
	theirs.set(t, key, theirToken, time.Minute)
	ours := s.processes[0].hold(t, key)
	ours.awaitRenewal(t, time.Now())
	if votes := s.nodes.votes(t, key, ours.lease.Token()); votes != majority {
		t.Errorf("%d nodes vote for the holder", votes)
	}
	if err := ours.end(); err != nil {
		t.Errorf("release: %v", err)
	}
	if votes := theirs.votes(t, key, theirToken); votes != size-majority {
		t.Errorf("%d nodes still vote for the other one", votes)
	}
}
