package quorum

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A classic client follows the recipe of Redlock: SET NX on a majority of the nodes.
func TestQuorumAndClassicClientExcludeEachOther(t *testing.T) {
	t.Parallel()
	const key = "k"
	d := newDeployment(t, 1)
	p := d.processes[0]
	d.awaitAllVotes(t, "begin")

	ours := p.hold(t, key)
	d.awaitVotes(t, ours)
	if set := d.nodes.set(t, key, theirToken, time.Minute); set != 0 {
		t.Errorf("the classic client has %d nodes while the quorum holds the lock", set)
	}
	if err := ours.release(); err != nil {
		t.Errorf("release: %v", err)
	}
	d.awaitFree(t, key)

	theirs := d.nodes[1 : 1+majority]
	if set := theirs.set(t, key, theirToken, time.Minute); set != majority {
		t.Fatalf("the classic client has %d nodes", set)
	}
	asked := time.Now()
	if lease, err := p.locks.TryLock(t.Context(), key); !errors.Is(err, core.ErrBusy) && !p.mayExcuse(err, asked) {
		_ = lease.Release(context.Background())
		t.Errorf("the classic client holds the lock, and TryLock returns %v", err)
	}
	// Longer than the timeout of a command: a caller that has no reply by then does not
	// know whether the key is busy.
	asked = time.Now()
	if lease, err := p.locks.With(core.WithWait(ttl/2)).Lock(t.Context(), key); !errors.Is(err, core.ErrWaitTimeout) && !p.mayExcuse(err, asked) {
		_ = lease.Release(context.Background())
		t.Errorf("the classic client holds the lock, and Lock returns %v", err)
	}
	before := p.waiters(key)
	waiter := d.callers(t)
	waiter.group.Go(func() { waiter.lock(p, byLock, key) })
	suite.Eventually(t, "a caller waits for the classic client", func() bool { return p.waiters(key) > before })
	if votes := theirs.votes(t, key, theirToken); votes != majority {
		t.Errorf("the classic client has %d nodes left", votes)
	}
	theirs.drop(t, key)
	waiter.group.Wait()
}

// Votes of a minority lock nothing. The holder does not remove them.
func TestMinorityOfVotesLocksNothing(t *testing.T) {
	t.Parallel()
	const key = "k"
	d := newDeployment(t, 1)
	d.awaitAllVotes(t, "begin")
	theirs := d.nodes[majority:]
	theirs.set(t, key, theirToken, time.Minute)
	ours := d.processes[0].hold(t, key)
	ours.awaitRenewal(t, time.Now())
	if votes := d.nodes.votes(t, key, ours.Token()); votes != majority {
		t.Errorf("%d nodes vote for the holder", votes)
	}
	if err := ours.release(); err != nil {
		t.Errorf("release: %v", err)
	}
	if votes := theirs.votes(t, key, theirToken); votes != nodeCount-majority {
		t.Errorf("%d nodes still vote for the other client", votes)
	}
}
