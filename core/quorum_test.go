package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// quorumTTL is the TTL and the quarantine of quorums in tests. A command timeout is a
// quarter of it, which is enough on a busy machine.
const quorumTTL = 4 * time.Second

// startServers starts independent servers.
func startServers(t *testing.T, n int) []*redistest.Server {
	t.Helper()
	servers := make([]*redistest.Server, n)
	for i := range servers {
		servers[i] = redistest.Start(t)
		servers[i].Grant(redistest.QuorumRights)
	}
	return servers
}

// clientsOf returns a client of each server.
func clientsOf(t *testing.T, servers []*redistest.Server) []redis.UniversalClient {
	t.Helper()
	var clients []redis.UniversalClient
	for _, server := range servers {
		clients = append(clients, server.Client(t))
	}
	return clients
}

// votesOf returns how many servers have this value for a key; "" means no value.
func votesOf(t *testing.T, clients []redis.UniversalClient, key, value string) (votes int) {
	t.Helper()
	for _, client := range clients {
		got, err := client.Get(t.Context(), "reqlock:"+key).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		if got == value {
			votes++
		}
	}
	return votes
}

// awaitVotes returns once all servers vote for a lease. Renewals request missing votes. It
// fails the test if the lease is lost.
func awaitVotes(t *testing.T, clients []redis.UniversalClient, lease *core.Lease) {
	t.Helper()
	suite.Eventually(t, "all servers vote, or the lease is lost", func() bool {
		return votesOf(t, clients, lease.Key(), lease.Token()) == len(clients) || lease.Context().Err() != nil
	})
	if lease.Context().Err() != nil {
		t.Fatal(context.Cause(lease.Context()))
	}
}

// openQuorum returns a Locker that is closed at the end of the test. Its servers may be in
// quarantine.
func openQuorum(t *testing.T, clients []redis.UniversalClient, opts ...core.Option) *core.Locker {
	t.Helper()
	opts = append([]core.Option{core.WithTTL(quorumTTL), core.WithCommandTimeout(quorumTTL / 4)}, opts...)
	locks := core.Must(core.NewQuorum(clients, opts...))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second) // a failed test may hold a lease
		defer cancel()
		noError(t, locks.Close(ctx))
	})
	return locks
}

// newQuorum returns such a Locker once all servers vote.
func newQuorum(t *testing.T, clients []redis.UniversalClient, opts ...core.Option) *core.Locker {
	t.Helper()
	locks := openQuorum(t, clients, opts...)
	lease, err := locks.With(core.WithWait(30*time.Second)).Lock(t.Context(), "ready "+redistest.OwnPrefix())
	noError(t, err)
	awaitVotes(t, clients, lease)
	noError(t, lease.Release(t.Context()))
	return locks
}

// TestQuorum runs each case on the same servers, each with its own keys. The servers vote:
// their quarantine is over.
func TestQuorum(t *testing.T) {
	t.Parallel()
	servers := startServers(t, 3)
	newQuorum(t, clientsOf(t, servers))
	for name, test := range map[string]func(t *testing.T, servers []*redistest.Server){
		"locks":                                testQuorumLocks,
		"serves many callers":                  testQuorumServesManyCallers,
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
	t.Helper()
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

// The callers of several processes lock one key. They exclude each other.
func testQuorumServesManyCallers(t *testing.T, servers []*redistest.Server) {
	t.Helper()
	var processes []*core.Locker
	for range 3 {
		processes = append(processes, newQuorum(t, clientsOf(t, servers)))
	}
	takeTurns(t, processes, 8, 5)
}

// A server cannot be reached during a release. It must lose its vote before the TTL: if a
// second server were lost meanwhile, the stale vote would keep the key locked.
func testMissedReleaseLeavesNoVote(t *testing.T, servers []*redistest.Server) {
	t.Helper()
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
