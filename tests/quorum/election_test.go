package quorum

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

const (
	// shortQuarantine is a quarantine that is shorter than the leases of another process.
	shortQuarantine = time.Second
	// theirToken is the value of another client in a key.
	theirToken = "token-of-another"
)

// outlivingTTL is the TTL of a lease that outlives shortQuarantine: two servers restart and
// vote within this time. They may vote two seconds after their quarantine, because Redis
// counts its uptime in whole seconds and a Locker checks a quarantine about once a second.
// The rest is room for a busy machine: 3 s, and 9 s with the race detector.
var outlivingTTL = shortQuarantine + 2*time.Second + ttl*3/2

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
	if votes := voters.votes(t, key, holder.Token()); votes != majority {
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
	if err := lease.Release(context.Background()); err != nil && !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("release by the next process: %v", err) // nodes in quarantine may be missing for a majority
	}
	// The holder trusts its lease until now, or until the lease has ended.
	_ = holder.release()
	return d.history.Take().Holds().Overlaps()
}

func TestNodesWithoutTheirVotesElectNoSecondHolder(t *testing.T) {
	suite.Full(t, "waits for the quarantine of two servers under one lease")
	t.Parallel()
	d := newDeployment(t, 1)
	for _, overlap := range d.restartVoters(t, "k", ttl) {
		t.Error(overlap)
	}
	d.awaitAllVotes(t, "end")
}

// With a quarantine shorter than leases there are two holders, and the check finds them.
// One Locker refuses such a configuration, so this takes two Lockers that differ.
func TestNodesThatVoteTooSoonElectTwoHolders(t *testing.T) {
	suite.Full(t, "waits for the quarantine of two servers under one lease")
	t.Parallel()
	d := newDeployment(t, 1, core.WithTTL(outlivingTTL))
	if overlaps := d.restartVoters(t, "k", shortQuarantine); len(overlaps) != 1 {
		t.Errorf("found %q, want one", overlaps)
	}
}
