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
