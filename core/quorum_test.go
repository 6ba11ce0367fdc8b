package core_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// TestQuorum runs each case on the same servers, each with its own keys. The servers vote:
// their quarantine is over.
func TestQuorum(t *testing.T) {
	t.Parallel()
	servers := startServers(t, 3)
	newQuorum(t, clientsOf(t, servers))
	for name, test := range map[string]func(t *testing.T, servers []*redistest.Server){
		"locks":                          testQuorumLocks,
		"refuses bad settings of a view": testViewOfQuorumRefusesBadSettings,
		"finds a duplicate server":       testQuorumFindsDuplicateServer,
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

func TestNewQuorumRefusesBadSettings(t *testing.T) {
	t.Parallel()
	nodes := startServers(t, 1)
	one := func() redis.UniversalClient { return nodes[0].Client(t) }
	same := one()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": nodes[0].Addr()}})
	t.Cleanup(func() { _ = ring.Close() })
	sentinel := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{nodes[0].Addr()}})
	t.Cleanup(func() { _ = sentinel.Close() })
	for name, c := range map[string]struct {
		clients []redis.UniversalClient
		opts    []core.Option
		want    string // in the error
	}{
		"no servers":            {nil, nil, "odd number"},
		"one":                   {[]redis.UniversalClient{one()}, nil, "odd number"},
		"four":                  {[]redis.UniversalClient{one(), one(), one(), one()}, nil, "odd number"},
		"nil":                   {[]redis.UniversalClient{one(), nil, one()}, nil, "client 1 is nil"},
		"the same client twice": {[]redis.UniversalClient{same, one(), same}, nil, "clients 0 and 2"},
		"a ring":                {[]redis.UniversalClient{one(), one(), ring}, nil, "client 2 leads to several"},
		"a sentinel":            {[]redis.UniversalClient{one(), sentinel, one()}, nil, "Sentinel"},
		"a search":              {[]redis.UniversalClient{one(), one(), one()}, []core.Option{core.WithUnknownSearch(time.Second)}, "WithUnknownSearch: a quorum runs no"},
		"a minimal hold":        {[]redis.UniversalClient{one(), one(), one()}, []core.Option{core.WithMinHold(time.Second)}, "WithMinHold: a majority"},
		"permits":               {[]redis.UniversalClient{one(), one(), one()}, []core.Option{core.WithPermits(2)}, "WithPermits: the servers of a quorum"},
		"shared locks":          {[]redis.UniversalClient{one(), one(), one()}, []core.Option{core.WithShared(true)}, "WithShared: the servers of a quorum"},
		"fencing":               {[]redis.UniversalClient{one(), one(), one()}, []core.Option{core.WithFencing(true)}, "WithFencing"},
		"half a hash tag":       {[]redis.UniversalClient{one(), one(), one()}, []core.Option{core.WithPrefix("{")}, "WithPrefix: the prefix has"},
		"a short quarantine":    {[]redis.UniversalClient{one(), one(), one()}, []core.Option{core.WithQuarantine(time.Second)}, "WithTTL"},
		"no quarantine":         {[]redis.UniversalClient{one(), one(), one()}, []core.Option{core.WithQuarantine(0)}, "WithQuarantine"},
	} {
		if _, err := core.NewQuorum(c.clients, c.opts...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	for _, quarantine := range []time.Duration{time.Second, time.Hour} { // below and above the TTL
		_, err := core.New(one(), core.WithQuarantine(quarantine))
		if err == nil || err.Error() != "reqlock: New: WithQuarantine is an option of NewQuorum only: leave it out" {
			t.Errorf("New with a quarantine of %v: %v", quarantine, err)
		}
	}
}

// wrapped is a client that cannot be compared.
type wrapped struct {
	*redis.Client
	_ []string
}

// A view of a quorum refuses what a quorum cannot do, and the error says why.
func testViewOfQuorumRefusesBadSettings(t *testing.T, servers []*redistest.Server) {
	var clients []redis.UniversalClient
	for _, server := range servers {
		clients = append(clients, wrapped{Client: server.Client(t)})
	}
	locks := openQuorum(t, clients, core.WithTTL(quorumTTL/2), core.WithQuarantine(quorumTTL))
	for why, opt := range map[string]core.Option{
		"WithFencing: a quorum has no counter":            core.WithFencing(true),
		"WithMinHold: a majority":                         core.WithMinHold(time.Second),
		"WithPermits: the servers of a quorum":            core.WithPermits(2),
		"WithShared: the servers of a quorum":             core.WithShared(true),
		"WithTTL: 8s is more than the quarantine":         core.WithTTL(2 * quorumTTL),
		"WithQuarantine is a setting of the whole Locker": core.WithQuarantine(time.Minute),
		"WithReplicas is a setting of the whole Locker":   core.WithReplicas(1, 10*time.Millisecond),
	} {
		if text := panicOf(func() { locks.With(opt) }); !strings.HasPrefix(text, "reqlock: "+why) {
			t.Errorf("got %s, want %s", text, why)
		}
	}
	wantError(t, errorOf(locks.Begin(t.Context(), "view", nil)), errors.ErrUnsupported)
	wantError(t, locks.Resolve(t.Context(), "view", core.NotDone(), anAttempt(t)), errors.ErrUnsupported)
	wantError(t, errorOf(locks.ReadRecord(t.Context(), "view")), errors.ErrUnsupported)
	lease, err := locks.With(core.WithTTL(quorumTTL), core.WithWait(30*time.Second)).Lock(t.Context(), "view")
	noError(t, err)
	noError(t, lease.Extend(t.Context(), quorumTTL))
	if err := lease.Extend(t.Context(), 2*quorumTTL); err == nil || !strings.Contains(err.Error(), "quarantine") {
		t.Errorf("Extend: %v", err)
	}
	release(t, lease)
}

// Two clients are connected to the same server. The quorum finds out also while the servers
// are in quarantine, and whichever server replies first.
func TestQuorumFindsDuplicateServerInQuarantine(t *testing.T) {
	t.Parallel()
	servers := startServers(t, 2)
	locks := openQuorum(t, clientsOf(t, append(servers, servers[0])))
	suite.Eventually(t, "the duplicate is found", func() bool {
		return strings.Contains(refusalOf(t, locks, "twice").Error(), "same server")
	})
}

// Two clients are connected to the same server, and all servers vote.
func testQuorumFindsDuplicateServer(t *testing.T, servers []*redistest.Server) {
	locks := openQuorum(t, clientsOf(t, []*redistest.Server{servers[0], servers[1], servers[0]}))
	for range 3 {
		if err := refusalOf(t, locks, "twice"); !strings.Contains(err.Error(), "same server") {
			t.Errorf("got %v", err)
		}
	}
	if err := locks.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "same server") {
		t.Errorf("Check: %v", err)
	}
}

// The servers of a quorum reply, and do not vote. The error of Check says why.
func TestCheckOfQuorumNamesTheReason(t *testing.T) {
	t.Parallel()
	servers := startServers(t, 3)
	for i, server := range servers {
		setUser(t, server.Client(t), fmt.Sprint("alice", i), redistest.Rights, "")
	}
	var infos atomic.Int64
	identifiedBy := func(info func() string) redis.UniversalClient {
		return storetest.Embedded(t, func(client *server.Peer, command string, _ ...string) (answered bool) {
			if command == "INFO" {
				client.WriteBulk(info())
			}
			return command == "INFO"
		})
	}
	for name, test := range map[string]struct {
		clients func(i int) redis.UniversalClient
		want    []string
	}{
		"they have just started": {func(i int) redis.UniversalClient { return servers[i].Client(t) }, []string{"WithQuarantine", "wait until"}},
		"a duplicate":            {func(i int) redis.UniversalClient { return servers[i%2].Client(t) }, []string{"same server", "address of its own"}},
		"replaced servers": {func(int) redis.UniversalClient {
			return identifiedBy(func() string { return fmt.Sprintf("run_id:%d\r\nuptime_in_seconds:9999", infos.Add(1)) })
		}, []string{"another server than before", "load balancer"}},
		"INFO is refused": {func(i int) redis.UniversalClient {
			return servers[i].Client(t, as(fmt.Sprint("alice", i), "secret"))
		}, []string{"grant it +info"}},
		"no run_id": {func(int) redis.UniversalClient {
			return identifiedBy(func() string { return "redis_version:7.0.0" })
		}, []string{"run_id", "proxy"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := openQuorum(t, []redis.UniversalClient{test.clients(0), test.clients(1), test.clients(2)}, core.WithQuarantine(time.Hour))
			err := locks.Check(t.Context())
			t.Log(err)
			wantFinding(t, err, test.want...)
			for _, wrong := range []string{"network", "TLS", "connection to redis"} {
				if strings.Contains(err.Error(), wrong) {
					t.Errorf("%v names %q", err, wrong)
				}
			}
		})
	}
}

// refusalOf returns the error of a TryLock that must fail with ErrUnavailable.
func refusalOf(t *testing.T, locks *core.Locker, key string) error {
	t.Helper()
	lease, err := locks.TryLock(t.Context(), key)
	if err == nil {
		release(t, lease)
	}
	if refusal, ok := core.RefusalOf(err); !ok || refusal.HTTP != http.StatusServiceUnavailable || !errors.Is(err, core.ErrUnavailable) {
		t.Fatalf("got %v, refusal %v", err, refusal)
	}
	return err
}
