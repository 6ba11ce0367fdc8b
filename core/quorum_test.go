package core_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redistest"
)

// briefly is the TTL of quorums in tests: servers vote a little later than that
// after their start.
const briefly = 500 * time.Millisecond

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

// votesOf returns how many servers have a key for a token.
func votesOf(t *testing.T, servers []redis.UniversalClient, key, token string) (votes int) {
	t.Helper()
	for _, server := range servers {
		got, err := server.Get(t.Context(), key).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		if got == token {
			votes++
		}
	}
	return votes
}

// newQuorum returns a Locker on servers, once all of them vote.
func newQuorum(t *testing.T, servers []*redistest.Server, opts ...core.Option) *core.Locker {
	t.Helper()
	locks := core.Must(core.NewQuorum(clientsOf(t, servers), append([]core.Option{core.WithTTL(briefly)}, opts...)...))
	t.Cleanup(func() {
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	lease, err := locks.With(core.WithWait(20*time.Second)).Lock(t.Context(), "are you there")
	if err != nil {
		t.Fatal(err)
	}
	clients := clientsOf(t, servers)
	for begun := time.Now(); votesOf(t, clients, "reqlock:are you there", lease.Token()) < len(servers); {
		if time.Since(begun) > 20*time.Second { // its renewals ask for the votes that are missing
			t.Fatal("not all servers vote")
		}
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	return locks
}

func TestAQuorumLocks(t *testing.T) {
	nodes := servers(t, 3)
	locks, others := newQuorum(t, nodes), newQuorum(t, nodes)
	lease, err := locks.TryLock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if votes := votesOf(t, clientsOf(t, nodes), "reqlock:a", lease.Token()); votes < 2 {
		t.Errorf("%d servers vote for it", votes)
	}
	if _, err := others.TryLock(t.Context(), "a"); !errors.Is(err, core.ErrBusy) {
		t.Errorf("got %v, want busy", err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	second, err := others.TryLock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// Many callers of several processes serialize on one key.
func TestAQuorumServesACrowd(t *testing.T) {
	nodes := servers(t, 3)
	var inside, done atomic.Int32
	var crowd sync.WaitGroup
	for range 3 {
		locks := newQuorum(t, nodes)
		for range 8 {
			crowd.Go(func() {
				for range 5 {
					err := locks.Do(t.Context(), "a", func(context.Context) error {
						if inside.Add(1) != 1 {
							t.Error("two are inside")
						}
						inside.Add(-1)
						done.Add(1)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	crowd.Wait()
	if done.Load() != 3*8*5 {
		t.Errorf("%d were inside", done.Load())
	}
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
func TestAViewOfAQuorumRefusesWhatItCannotDo(t *testing.T) {
	nodes := servers(t, 3)
	var clients []redis.UniversalClient
	for _, node := range nodes {
		clients = append(clients, wrapped{Client: node.Client(t)})
	}
	locks := core.Must(core.NewQuorum(clients, core.WithTTL(briefly), core.WithQuarantine(time.Second)))
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	for name, opt := range map[string]core.Option{
		"WithFencing": core.WithFencing(true), "WithTTL": core.WithTTL(2 * time.Second), "WithQuarantine": core.WithQuarantine(time.Minute),
		"WithReplicas": core.WithReplicas(1, 10*time.Millisecond),
	} {
		func() {
			defer func() {
				if said, _ := recover().(interface{ Error() string }); said != nil && !strings.Contains(said.Error(), name) {
					t.Errorf("%s: %v", name, said)
				}
			}()
			locks.With(opt)
			t.Errorf("%s was taken", name)
		}()
	}
	if _, err := locks.Begin(t.Context(), "a", nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Begin: %v", err)
	}
	if err := locks.Resolve(t.Context(), "a"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Resolve: %v", err)
	}
	lease, err := locks.With(core.WithTTL(time.Second), core.WithWait(20*time.Second)).Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Extend(t.Context(), time.Second); err != nil {
		t.Error(err)
	}
	if err := lease.Extend(t.Context(), 2*time.Second); err == nil || !strings.Contains(err.Error(), "quarantine") {
		t.Errorf("Extend: %v", err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// A server that stood still while locks were taken and released keeps no votes: with
// them, the next server that is lost would take those locks along until the TTL.
func TestAServerOfAQuorumThatStoodStillKeepsNoVote(t *testing.T) {
	nodes := servers(t, 3)
	locks := newQuorum(t, nodes, core.WithTTL(3*time.Second))
	keys := []string{"a", "b", "c", "d", "e", "f"}
	nodes[2].Pause()
	for _, key := range keys {
		lease, err := locks.TryLock(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	rdb := nodes[2].Client(t)
	nodes[2].Resume()
	begun := time.Now()
	for votes := int64(-1); votes != 0; {
		var err error
		if votes, err = rdb.Exists(t.Context(), "reqlock:a", "reqlock:b", "reqlock:c", "reqlock:d", "reqlock:e", "reqlock:f").Result(); err != nil {
			t.Fatal(err)
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("%d votes stay", votes)
		}
	}
}

// A server that two clients lead to is found out, whoever answers first.
//
//faults:row 7: two of them are the same server
func TestAQuorumFindsAServerThatItHasTwice(t *testing.T) {
	nodes := servers(t, 2)
	locks := core.Must(core.NewQuorum(clientsOf(t, append(nodes, nodes[0])), core.WithTTL(briefly)))
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	for range 3 {
		_, err := locks.TryLock(t.Context(), "a")
		if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "same server") {
			t.Errorf("got %v", err)
		}
		if outcome, ok := core.OutcomeOf(err); !ok || outcome.HTTP != http.StatusServiceUnavailable {
			t.Errorf("outcome %v", outcome)
		}
	}
	if err := locks.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "same server") {
		t.Errorf("Check: %v", err)
	}
}
