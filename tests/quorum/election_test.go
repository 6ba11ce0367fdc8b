package quorum

import (
	"context"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

const (
	// longTTL is the life of a lease that is not renewed: longer than two servers take
	// to come back, and to have run for a ttl, by whole seconds and two of them late. It
	// has room for a busy machine.
	longTTL = 3 * ttl
	// theirToken is the value of a client that is none of ours.
	theirToken = "token-of-another"
)

// An election is three nodes that have voted for a holder, two of which come back
// empty, and two that have not. It returns how many holders there are at a time.
func (s *stage) election(t *testing.T, key string, nextTTL time.Duration) (overlaps []string) {
	t.Helper()
	voters, others := s.nodes[:majority], s.nodes[majority:]
	s.awaitAllVotes(t, "begin")
	if set := others.set(t, key, theirToken, time.Minute); set != len(others) {
		t.Fatalf("%d nodes vote for another", set)
	}
	holder := s.processes[0].hold(t, key, core.WithRenewal(false))
	if votes := voters.votes(t, key, holder.lease.Token()); votes != majority {
		t.Fatalf("%d nodes vote for the holder", votes)
	}
	others.drop(t, key)
	for _, n := range voters[1:] {
		n.server.Restart()
	}

	next := newProcess(t, "the next process", s.nodes, s.history, core.WithTTL(nextTTL))
	lease, err := next.locks.With(core.WithWait(patience)).Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	next.history.section(lease.Context(), next.name, short)
	if err := lease.Release(context.Background()); err != nil {
		t.Errorf("release by the next process: %v", err)
	}
	// The holder believes in its lease until this ends.
	await(t, "the holder is told", func() bool { return holder.told.Load() != nil })
	_ = holder.end()
	return s.history.overlaps()
}

// Nodes that have forgotten whom they voted for do not elect another.
func TestNodesThatForgotTheirVotesElectNobody(t *testing.T) {
	t.Parallel()
	const sameTTL = 2 * ttl
	s := newStage(t, 1, core.WithTTL(sameTTL))
	for _, overlap := range s.election(t, "k", sameTTL) {
		t.Error(overlap)
	}
}

// With a quarantine that is shorter than leases they do, and the check sees it. A
// Locker refuses to be that wrong by itself; it takes two that do not agree.
func TestNodesThatVoteTooSoonElectTwoHolders(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, core.WithTTL(longTTL))
	if overlaps := s.election(t, "k", ttl); len(overlaps) != 1 {
		t.Errorf("found %q, want one", overlaps)
	}
}
