package core_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A demotion is that of a master of a cluster while it waits for its replicas.
type demotion struct {
	cluster *redistest.Cluster
	master  *redistest.Server // of the lock
	locks   *core.Locker      // whose replicas have long
}

// blocked is a client of CLIENT LIST that waits for replicas.
var blocked = regexp.MustCompile(`flags=b\b.* cmd=wait `)

func newDemotion(t *testing.T, lock string) *demotion {
	t.Helper()
	cluster := redistest.StartCluster(t)
	for _, node := range cluster.Nodes() {
		node.Grant(redistest.ReplicaRights)
	}
	rdb := cluster.Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout = 20 * time.Second })
	locks := newLocker(t, rdb, core.WithReplicas(1, 5*time.Second), core.WithCommandTimeout(20*time.Second), core.WithTTL(80*time.Second))
	return &demotion{cluster, cluster.MasterOf(lock), locks}
}

// during does what waits for replicas, demotes the master meanwhile, and returns
// what has become of it.
func (d *demotion) during(t *testing.T, do func() error) error {
	t.Helper()
	rdb := d.master.Client(t)
	d.master.RefuseReplicas(true)
	done := make(chan error, 1)
	go func() { done <- do() }()
	await(t, "WAIT is at the master", func() bool {
		return blocked.MatchString(rdb.ClientList(t.Context()).Val())
	})
	d.cluster.Takeover(d.master)
	return <-done
}

// The server ends WAIT by UNBLOCKED then. Who waits is served by the next master.
func TestAWaiterSurvivesADemotionDuringWAIT(t *testing.T) {
	d := newDemotion(t, "reqlock:k")
	release(t, lock(t, d.locks, "k"))
	if err := d.during(t, func() error {
		lease, err := d.locks.Lock(t.Context(), "k")
		if err != nil {
			return err
		}
		return lease.Release(context.Background())
	}); err != nil {
		t.Error(err)
	}
}

// A commit is tried for two seconds, and the next master takes it.
func TestACommitSurvivesADemotionDuringWAIT(t *testing.T) {
	d := newDemotion(t, "reqlock:i:k")
	other := 0 // a key of the same master, which knows the script from then on
	for d.cluster.MasterOf(fmt.Sprint("reqlock:i:other", other)) != d.master {
		other++
	}
	if err := begin(t, d.locks, fmt.Sprint("other", other)).Commit(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	attempt := begin(t, d.locks, "k")
	if err := d.during(t, func() error { return attempt.Commit(context.Background(), []byte("done")) }); err != nil {
		t.Errorf("commit: %v", err)
	}
	wantReplay(t, d.locks, "k", "done")
}
