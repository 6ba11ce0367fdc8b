package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// TestCheckOfCluster runs its cases one after the other, because each changes the
// configuration of the same cluster.
func TestCheckOfCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	t.Run("names the missing right", func(t *testing.T) { testCheckNamesMissingRightInCluster(t, cluster) })
	t.Run("names a busy pool", func(t *testing.T) { testErrorsNameABusyPoolInCluster(t, cluster) })
	t.Run("names the master with a problem", func(t *testing.T) { testCheckNamesMaster(t, cluster) })
}

// A client of a cluster needs the rights of both rules.
func testCheckNamesMissingRightInCluster(t *testing.T, cluster *redistest.Cluster) {
	var admins []*redis.Client
	for _, node := range cluster.Nodes() {
		admins = append(admins, node.Client(t))
	}
	for i, missing := range append([]string{""}, strings.Fields(redistest.ClusterRights)...) {
		user := fmt.Sprint("alice", i)
		for _, admin := range admins {
			setUser(t, admin, user, redistest.Rights+" "+redistest.ClusterRights, missing)
		}
		rdb := cluster.Client(t, func(o *redis.ClusterOptions) { o.Username, o.Password = user, "secret" })
		locks := newLocker(t, rdb, patient)
		err := locks.Check(t.Context())
		t.Logf("without %q: %v", missing, err)
		if missing != "" {
			wantFinding(t, err, missing)
			continue
		}
		noError(t, err)
		for _, revoked := range []string{"&{reqlock:*", "+asking", "+spublish", "+ssubscribe", "+sunsubscribe"} {
			for _, rights := range []string{revoked, ""} { // the last Check has found no problem
				for _, admin := range admins {
					setUser(t, admin, user, redistest.Rights+" "+redistest.ClusterRights, rights)
				}
				if err := locks.Check(t.Context()); rights != "" {
					wantFinding(t, err, revoked)
				} else {
					noError(t, err)
				}
			}
		}
	}
}

func testCheckNamesMaster(t *testing.T, cluster *redistest.Cluster) {
	rdb := cluster.Client(t)
	for _, node := range cluster.Nodes() {
		node.Grant(append(redistest.PrefixRights("{app}:"), "+info")...)
	}
	for _, prefix := range []string{"reqlock:", "{app}:"} {
		locks := newLocker(t, rdb, core.WithPrefix(prefix))
		if err := locks.Check(t.Context()); err != nil {
			t.Errorf("prefix %q: %v", prefix, err)
		}
		closeLocker(t, locks)
		for _, master := range cluster.Masters() {
			wantNoKeys(t, master.Client(t))
		}
	}
	for i, master := range cluster.Masters() {
		admin := master.Client(t)
		configured("min-replicas-to-write", "3")(t, admin)
		wantFinding(t, newLocker(t, rdb).Check(t.Context()), master.Addr(), "min-replicas-to-write")
		configured("min-replicas-to-write", "0")(t, admin)
		configured("maxmemory-policy", "allkeys-lfu")(t, admin)
		configured("maxmemory", "1gb")(t, admin)
		events := &recorder{}
		if err := newLocker(t, cluster.Client(t), core.WithObserver(events.record)).Check(t.Context()); err != nil {
			t.Errorf("master %d: %v", i, err)
		}
		if warned := events.of(core.Warned); len(warned) != 2 || !strings.HasPrefix(warned[1].Err.Error(), "127.0.0.1:") ||
			!strings.Contains(warned[0].Err.Error(), "ContextTimeoutEnabled") {
			t.Errorf("warned: %v", warned)
		}
	}
	node := newLocker(t, cluster.Masters()[0].Client(t))
	for range 8 { // the random key of some checks is in a slot of the node
		wantFinding(t, node.Check(t.Context()), "redis.NewClusterClient")
	}
}

// Check reports clients of the other kind than the server, and rights without which a process
// cannot notify waiters with clients of the other kind.
func TestCheckAdvisesOnKindsOfClients(t *testing.T) {
	t.Parallel()
	node := redistest.StartMasters(t, 1)[0]
	admin := node.Client(t)
	const both = redistest.Rights + " " + redistest.ClusterRights
	for i, test := range []struct {
		rights, missing string
		isCluster       bool
		warned, other   string // texts that the warning has, and does not have
	}{
		{both + " +info", "", false, "redis.NewClusterClient", "+spublish"},
		{redistest.Rights + " +info", "", false, "+spublish and &reqlock:* and &{reqlock:*", "+publish"},
		{both + " +info", "+info", false, "", ""},
		{both, "", true, "", ""},
		{both, "+publish", true, "+publish and &reqlock:*", "+spublish"},
		{both, "&reqlock:*", true, "+publish and &reqlock:*", "+spublish"},
	} {
		user := fmt.Sprint("alice", i)
		setUser(t, admin, user, test.rights, test.missing)
		rdb := redis.UniversalClient(node.Client(t, as(user, "secret"), deadlines))
		if test.isCluster {
			rdb = redis.NewClusterClient(&redis.ClusterOptions{
				Addrs: []string{node.Addr()}, Username: user, Password: "secret", ContextTimeoutEnabled: true,
			})
			t.Cleanup(func() { _ = rdb.Close() })
		}
		events := &recorder{}
		if err := newLocker(t, rdb, patient, core.WithObserver(events.record)).Check(t.Context()); err != nil {
			t.Errorf("%+v: %v", test, err)
		}
		warned := events.of(core.Warned)
		switch {
		case test.warned == "" && len(warned) == 0:
		case len(warned) != 1 || test.warned == "":
			t.Errorf("%+v: %v", test, warned)
		case !strings.Contains(warned[0].Err.Error(), test.warned) || strings.Contains(warned[0].Err.Error(), test.other):
			t.Errorf("%+v: %v", test, warned[0].Err)
		}
	}
}

// A Sentinel that does not know the master replies nil. The nil must not count as the reply
// to the command that needs the master.
func TestUnknownMasterIsUnavailable(t *testing.T) {
	t.Parallel()
	servers := shared(t, redistest.OnSentinels)
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "unknown", SentinelAddrs: servers.Options().Addrs, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	locks := servers.newLocker(t, rdb, core.WithWait(300*time.Millisecond))
	_, err := locks.TryLock(t.Context(), "k")
	wantError(t, err, core.ErrUnavailable)
	wantError(t, errorOf(locks.Lock(t.Context(), "k")), core.ErrUnavailable)
	wantError(t, errorOf(locks.With(core.WithFencing(true)).TryLock(t.Context(), "k")), core.ErrUnavailable)
	wantError(t, errorOf(locks.Begin(t.Context(), "k", nil)), core.ErrUnavailable)

	err = locks.Check(t.Context())
	wantFinding(t, err, "MasterName", "SentinelAddrs")
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %v", err)
	}
}

func TestCheckOfClientOfASentinel(t *testing.T) {
	t.Parallel()
	servers := shared(t, redistest.OnSentinels)
	rdb := redis.NewClient(&redis.Options{Addr: servers.Options().Addrs[0]})
	t.Cleanup(func() { _ = rdb.Close() })
	wantFinding(t, servers.newLocker(t, rdb).Check(t.Context()), "redis.NewFailoverClient")
}
