package core_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redistest"
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

func TestAQuorumRefusesWhatItCannotDo(t *testing.T) {
	nodes := servers(t, 1)
	one := func() redis.UniversalClient { return nodes[0].Client(t) }
	same := one()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": nodes[0].Addr()}})
	t.Cleanup(func() { _ = ring.Close() })
	sentinel := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{nodes[0].Addr()}})
	t.Cleanup(func() { _ = sentinel.Close() })
	for name, c := range map[string]struct {
		clients []redis.UniversalClient
		opts    []core.Option
		says    string
	}{
		"no servers":      {nil, nil, "odd number"},
		"one":             {[]redis.UniversalClient{one()}, nil, "odd number"},
		"four":            {[]redis.UniversalClient{one(), one(), one(), one()}, nil, "odd number"},
		"nil":             {[]redis.UniversalClient{one(), nil, one()}, nil, "client 1 is nil"},
		"twice":           {[]redis.UniversalClient{same, one(), same}, nil, "clients 0 and 2"},
		"a ring":          {[]redis.UniversalClient{one(), one(), ring}, nil, "client 2 leads to several"},
		"a sentinel":      {[]redis.UniversalClient{one(), sentinel, one()}, nil, "Sentinel"},
		"fencing":         {[]redis.UniversalClient{one(), one(), one()}, []core.Option{core.WithFencing(true)}, "WithFencing"},
		"half a tag":      {[]redis.UniversalClient{one(), one(), one()}, []core.Option{core.WithPrefix("{")}, "WithPrefix: the prefix has"},
		"a short pause":   {[]redis.UniversalClient{one(), one(), one()}, []core.Option{core.WithQuarantine(time.Second)}, "WithTTL"},
		"no pause at all": {[]redis.UniversalClient{one(), one(), one()}, []core.Option{core.WithQuarantine(0)}, "WithQuarantine"},
	} {
		if _, err := core.NewQuorum(c.clients, c.opts...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", name, err, c.says)
		}
	}
	if _, err := core.New(one(), core.WithQuarantine(time.Second)); err == nil {
		t.Error("New took WithQuarantine")
	}
}

// wrapped is a client that cannot be compared.
type wrapped struct {
	*redis.Client
	_ []string
}

// What a Locker of a quorum cannot do is refused with the reason, when it is asked for.
func aViewOfAQuorumRefusesWhatItCannotDo(t *testing.T, nodes []*redistest.Server) {
	t.Helper()
	var clients []redis.UniversalClient
	for _, node := range nodes {
		clients = append(clients, wrapped{Client: node.Client(t)})
	}
	locks := openQuorum(t, clients, core.WithTTL(quorumTTL/2), core.WithQuarantine(quorumTTL))
	for why, opt := range map[string]core.Option{
		"WithFencing: a quorum has no counter":            core.WithFencing(true),
		"WithTTL: 8s is more than the quarantine":         core.WithTTL(2 * quorumTTL),
		"WithQuarantine is a setting of the whole Locker": core.WithQuarantine(time.Minute),
		"WithReplicas is a setting of the whole Locker":   core.WithReplicas(1, 10*time.Millisecond),
	} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.HasPrefix(said, "reqlock: "+why) {
					t.Errorf("said %s, want %s", said, why)
				}
			}()
			locks.With(opt)
		}()
	}
	if _, err := locks.Begin(t.Context(), "v", nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Begin: %v", err)
	}
	if err := locks.Resolve(t.Context(), "v"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Resolve: %v", err)
	}
	lease, err := locks.With(core.WithTTL(quorumTTL), core.WithWait(30*time.Second)).Lock(t.Context(), "v")
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Extend(t.Context(), quorumTTL); err != nil {
		t.Error(err)
	}
	if err := lease.Extend(t.Context(), 2*quorumTTL); err == nil || !strings.Contains(err.Error(), "quarantine") {
		t.Errorf("Extend: %v", err)
	}
	release(t, lease)
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

// A server that two clients lead to is found out, whoever answers first, and whether
// the servers vote.
//
//faults:row 7: two of them are the same server
func TestAQuorumFindsAServerThatItHasTwice(t *testing.T) {
	t.Parallel()
	nodes := servers(t, 3)
	twice := []*redistest.Server{nodes[0], nodes[1], nodes[0]}
	t.Run("that has just started", func(t *testing.T) { findsTwice(t, openQuorum(t, clientsOf(t, twice))) })
	newQuorum(t, clientsOf(t, nodes)) // returns when they vote
	t.Run("that votes", func(t *testing.T) {
		locks := openQuorum(t, clientsOf(t, twice))
		findsTwice(t, locks)
		if err := locks.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "same server") {
			t.Errorf("Check: %v", err)
		}
	})
}

// findsTwice asks a quorum for a lock that has two clients of one server.
func findsTwice(t *testing.T, locks *core.Locker) {
	t.Helper()
	for range 3 {
		lease, err := locks.TryLock(t.Context(), "a")
		if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "same server") {
			_ = lease.Release(t.Context())
			t.Fatalf("got %v", err)
		}
		if outcome, ok := core.OutcomeOf(err); !ok || outcome.HTTP != http.StatusServiceUnavailable {
			t.Errorf("outcome %v", outcome)
		}
	}
}
