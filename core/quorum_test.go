package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

const (
	// quorumTTL is the TTL of quorums in tests. A quarter of it is the bound of a
	// command: it has room for a busy machine.
	quorumTTL = 4 * time.Second
	// longestTTL is the longest one, and for how long servers have run on which tests
	// begin that need votes.
	longestTTL = 6 * time.Second
)

// servers starts servers that are alone.
func servers(t *testing.T, n int) []*redistest.Server {
	t.Helper()
	all := make([]*redistest.Server, n)
	for i := range all {
		all[i] = redistest.Start(t)
		all[i].Grant(redistest.QuorumRights)
	}
	return all
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

// votesOf returns how many servers have this value for a key; "" is none.
func votesOf(t *testing.T, servers []redis.UniversalClient, key, value string) (votes int) {
	t.Helper()
	for _, server := range servers {
		got, err := server.Get(t.Context(), "reqlock:"+key).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		if got == value {
			votes++
		}
	}
	return votes
}

// awaitVotes returns when a lease has the votes of all servers. Its renewals ask for
// those that are missing.
func awaitVotes(t *testing.T, servers []redis.UniversalClient, lease *core.Lease) {
	t.Helper()
	await(t, "all servers vote, or the lease is lost", func() bool {
		return votesOf(t, servers, lease.Key(), lease.Token()) == len(servers) || lease.Context().Err() != nil
	})
	if lease.Context().Err() != nil {
		t.Fatal(context.Cause(lease.Context()))
	}
}

// openQuorum returns a Locker on the servers of these clients, which may not vote yet.
// It ends with the test.
func openQuorum(t *testing.T, clients []redis.UniversalClient, opts ...core.Option) *core.Locker {
	t.Helper()
	opts = append([]core.Option{core.WithTTL(quorumTTL), core.WithCommandTimeout(quorumTTL / 4)}, opts...)
	locks := core.Must(core.NewQuorum(clients, opts...))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second) // a test that failed may hold a lease
		defer cancel()
		if err := locks.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return locks
}

// newQuorum returns such a Locker once all servers vote.
func newQuorum(t *testing.T, clients []redis.UniversalClient, opts ...core.Option) *core.Locker {
	t.Helper()
	locks := openQuorum(t, clients, opts...)
	lease, err := locks.With(core.WithWait(30*time.Second)).Lock(t.Context(), "are you there")
	if err != nil {
		t.Fatal(err)
	}
	awaitVotes(t, clients, lease)
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	return locks
}

// TestAQuorum runs each case on servers that the cases share, and that vote.
func TestAQuorum(t *testing.T) {
	t.Parallel()
	nodes := servers(t, 3)
	newQuorum(t, clientsOf(t, nodes), core.WithQuarantine(longestTTL))
	for name, run := range map[string]func(t *testing.T, nodes []*redistest.Server){
		"locks":                            aQuorumLocks,
		"serves a crowd":                   aQuorumServesACrowd,
		"refuses what its views cannot do": aViewOfAQuorumRefusesWhatItCannotDo,
		"makes up for a release that was not heard": aServerThatDidNotHearOfAReleaseKeepsNoVote,
	} {
		t.Run(name, func(t *testing.T) { run(t, nodes) })
	}
}

func aQuorumLocks(t *testing.T, nodes []*redistest.Server) {
	t.Helper()
	clients := clientsOf(t, nodes)
	locks, others := newQuorum(t, clients), newQuorum(t, clients)
	lease, err := locks.TryLock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if votes := votesOf(t, clients, "a", lease.Token()); votes < 2 {
		t.Errorf("%d servers vote for it", votes)
	}
	if busy, err := others.TryLock(t.Context(), "a"); !errors.Is(err, core.ErrBusy) {
		_ = busy.Release(t.Context())
		t.Errorf("got %v, want busy", err)
	}
	release(t, lease)
	// A release is told once two votes are free. Who asks while the third is not gives
	// up if one of the two is slow.
	await(t, "all votes are free", func() bool { return votesOf(t, clients, "a", "") == len(clients) })
	second, err := others.TryLock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	release(t, second)
}

// Many callers of several processes serialize on one key.
func aQuorumServesACrowd(t *testing.T, nodes []*redistest.Server) {
	t.Helper()
	var processes []*core.Locker
	for range 3 {
		processes = append(processes, newQuorum(t, clientsOf(t, nodes)))
	}
	takeTurns(t, processes, 8, 5)
}

// A server that was down for others when a lock was released keeps no vote for it: with
// that, the next server that is lost would take the lock along until the TTL.
func aServerThatDidNotHearOfAReleaseKeepsNoVote(t *testing.T, nodes []*redistest.Server) {
	t.Helper()
	raw, clients := clientsOf(t, nodes), clientsOf(t, nodes)
	proxies := make([]*redistest.Proxy, len(nodes))
	for i, node := range nodes {
		proxies[i] = redistest.NewProxy(t, node.Addr())
		clients[i] = proxies[i].Client(t)
	}
	locks := newQuorum(t, clients, core.WithTTL(longestTTL))
	lease, err := locks.TryLock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := locks.TryLock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	awaitVotes(t, raw, lease)
	proxies[0].Refuse(true)
	begun, life := time.Now(), raw[0].PTTL(t.Context(), "reqlock:a").Val()
	release(t, lease)
	// That a release has failed is known once the servers were told in vain, and the
	// first one of the release before as well.
	proxies[1].Refuse(true)
	wantError(t, other.Release(t.Context()), core.ErrUnavailable)
	if votes := votesOf(t, raw, "a", lease.Token()); votes != 1 {
		t.Errorf("%d servers vote for what was released, want the one that was not told", votes)
	}
	proxies[0].Refuse(false)
	proxies[1].Refuse(false)
	await(t, "it votes no more", func() bool { return votesOf(t, raw, "a", lease.Token()) == 0 })
	if took := time.Since(begun); took > life*9/10 {
		t.Errorf("it kept the vote for %v, and that had %v to live", took, life)
	}
}
