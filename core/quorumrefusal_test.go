package core_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

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

// A server that two clients lead to is found out, whoever answers first, and whether
// the servers vote.
//
//faults:row 7: two of them are the same server
func TestAQuorumFindsAServerThatItHasTwice(t *testing.T) {
	t.Parallel()
	nodes := servers(t, 3)
	twice := []*redistest.Server{nodes[0], nodes[1], nodes[0]}
	t.Run("that has just started", func(t *testing.T) {
		locks := openQuorum(t, clientsOf(t, twice))
		await(t, "it is found out", func() bool { return strings.Contains(refusal(t, locks), "same server") })
	})
	newQuorum(t, clientsOf(t, nodes)) // returns when they vote
	t.Run("that votes", func(t *testing.T) {
		locks := openQuorum(t, clientsOf(t, twice))
		for range 3 {
			if says := refusal(t, locks); !strings.Contains(says, "same server") {
				t.Errorf("got %s", says)
			}
		}
		if err := locks.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "same server") {
			t.Errorf("Check: %v", err)
		}
	})
}

// refusal asks a quorum for a lock that nobody gets now, and returns what it says.
func refusal(t *testing.T, locks *core.Locker) string {
	t.Helper()
	lease, err := locks.TryLock(t.Context(), "a")
	if err == nil {
		release(t, lease)
	}
	if outcome, ok := core.OutcomeOf(err); !ok || outcome.HTTP != http.StatusServiceUnavailable || !errors.Is(err, core.ErrUnavailable) {
		t.Fatalf("got %v, outcome %v", err, outcome)
	}
	return err.Error()
}
