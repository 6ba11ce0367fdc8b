package core_test

import (
	"errors"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// TestQuorum runs each case on the same servers, each with its own keys. The servers vote:
// their quarantine is over.
func TestQuorum(t *testing.T) {
	t.Parallel()
	servers := startServers(t, 3)
	newQuorum(t, clientsOf(t, servers))
	for name, test := range map[string]func(t *testing.T, servers []*redistest.Server){
		"locks":                                testQuorumLocks,
		"refuses bad settings of a view":       testViewOfQuorumRefusesBadSettings,
		"finds a duplicate server":             testQuorumFindsDuplicateServer,
		"removes the vote of a missed release": testMissedReleaseLeavesNoVote,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, servers)
		})
	}
}

func testQuorumLocks(t *testing.T, servers []*redistest.Server) {
	clients := clientsOf(t, servers)
	locks, others := newQuorum(t, clients), newQuorum(t, clients)
	lease, err := locks.TryLock(t.Context(), "locks")
	noError(t, err)
	if votes := votesOf(t, clients, "locks", lease.Token()); votes < 2 {
		t.Errorf("%d servers vote for the lease", votes)
	}
	if busy, err := others.TryLock(t.Context(), "locks"); !errors.Is(err, core.ErrBusy) {
		_ = busy.Release(t.Context())
		t.Errorf("got %v, want busy", err)
	}
	release(t, lease)
	// Release returns once two servers have confirmed. A TryLock before the third one has
	// would fail if one of the two is slow.
	suite.Eventually(t, "no server votes", func() bool { return votesOf(t, clients, "locks", "") == len(clients) })
	second, err := others.TryLock(t.Context(), "locks")
	noError(t, err)
	release(t, second)
}

// A server cannot be reached during a release. It must lose its vote before the TTL: if a
// second server were lost meanwhile, the stale vote would keep the key locked.
func testMissedReleaseLeavesNoVote(t *testing.T, servers []*redistest.Server) {
	direct, clients := clientsOf(t, servers), clientsOf(t, servers)
	proxies := make([]*redistest.Proxy, len(servers))
	for i, server := range servers {
		proxies[i] = redistest.NewProxy(t, server.Addr())
		clients[i] = proxies[i].Client(t)
	}
	locks := newQuorum(t, clients)
	lease, err := locks.TryLock(t.Context(), "missed")
	noError(t, err)
	other, err := locks.TryLock(t.Context(), "other")
	noError(t, err)
	awaitVotes(t, direct, lease)
	proxies[0].Refuse(true)
	release(t, lease)
	if !direct[0].PExpire(t.Context(), "reqlock:missed", time.Hour).Val() { // so the vote does not expire during the test
		t.Error("the unreachable server has no vote")
	}
	// The second release fails once both unreachable servers have failed. By then the first
	// server has also failed for the first release.
	proxies[1].Refuse(true)
	wantError(t, other.Release(t.Context()), core.ErrUnavailable)
	if votes := votesOf(t, direct, "missed", lease.Token()); votes != 1 {
		t.Errorf("%d servers vote for the released lease, want only the unreachable one", votes)
	}
	proxies[0].Refuse(false)
	proxies[1].Refuse(false)
	suite.Eventually(t, "no server votes", func() bool { return votesOf(t, direct, "missed", lease.Token()) == 0 })
}
