package core_test

import (
	"fmt"
	"strings"
	"testing"

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
	t.Helper()
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
		err := newLocker(t, rdb, patient).Check(t.Context())
		t.Logf("without %q: %v", missing, err)
		if missing != "" {
			wantFinding(t, err, missing)
		} else if err != nil {
			t.Errorf("with all rights: %v", err)
		}
	}
}

func testCheckNamesMaster(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
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
		if err := newLocker(t, rdb, core.WithObserver(events.record)).Check(t.Context()); err != nil {
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
