package quorum

import (
	"context"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

const (
	// longTTL is the TTL of a lease that is not renewed. Two servers restart and run for a
	// ttl within this time. Redis counts its uptime in whole seconds, so they may vote two
	// seconds late. The rest is room for a busy machine.
	longTTL = 3 * ttl
	// theirToken is the value of another client in a key.
	theirToken = "token-of-another"
)

// restartVoters makes three nodes vote for a holder, restarts two of them empty, and makes
// another process lock the key. It returns the overlaps of holds.
func (d *deployment) restartVoters(t *testing.T, key string, nextTTL time.Duration) []history.Overlap {
	t.Helper()
	voters, others := d.nodes[:majority], d.nodes[majority:]
	d.awaitAllVotes(t, "begin")
	if set := others.set(t, key, theirToken, time.Minute); set != len(others) {
		t.Fatalf("%d nodes vote for another", set)
	}
	holder := d.processes[0].hold(t, key, core.WithRenewal(false))
	if votes := voters.votes(t, key, holder.lease.Token()); votes != majority {
		t.Fatalf("%d nodes vote for the holder", votes)
	}
	others.drop(t, key)
	for _, n := range voters[1:] {
		n.server.Restart()
	}

	next := newProcess(t, "the next process", d.nodes, d.history, core.WithTTL(nextTTL))
	lease, err := next.locks.With(core.WithWait(patience)).Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	runSection(lease.Context(), next.history, next.name, sectionTime)
	if err := lease.Release(context.Background()); err != nil {
		t.Errorf("release by the next process: %v", err)
	}
	// The holder trusts its lease until the lease ends.
	holder.awaitLoss(t)
	_ = holder.release()
	return d.history.Take().Overlaps()
}

func TestNodesWithoutTheirVotesElectNoSecondHolder(t *testing.T) {
	t.Parallel()
	const sameTTL = 2 * ttl
	d := newDeployment(t, 1, core.WithTTL(sameTTL))
	for _, overlap := range d.restartVoters(t, "k", sameTTL) {
		t.Error(overlap)
	}
}

// With a quarantine shorter than leases there are two holders, and the check finds them.
// One Locker refuses such a configuration, so this takes two Lockers that differ.
func TestNodesThatVoteTooSoonElectTwoHolders(t *testing.T) {
	t.Parallel()
	suite.Full(t, "waits for the end of a lease of three times the usual TTL")
	d := newDeployment(t, 1, core.WithTTL(longTTL))
	if overlaps := d.restartVoters(t, "k", ttl); len(overlaps) != 1 {
		t.Errorf("found %q, want one", overlaps)
	}
}
