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
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A demotion turns the master of a lock into a replica while WAIT blocks on the master.
type demotion struct {
	cluster *redistest.Cluster
	master  *redistest.Server
	locks   *core.Locker // with a long replica timeout
}

// blocked matches a client that is blocked by WAIT, in the reply to CLIENT LIST.
var blocked = regexp.MustCompile(`flags=b\b.* cmd=wait `)

// newDemotion starts a cluster. The master of the demotion is the master of the key.
func newDemotion(t *testing.T, key string) *demotion {
	t.Helper()
	cluster := redistest.StartCluster(t)
	for _, node := range cluster.Nodes() {
		node.Grant(redistest.ReplicaRights)
	}
	rdb := cluster.Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout = 20 * time.Second })
	locks := newLocker(t, rdb, core.WithReplicas(1, 5*time.Second), core.WithCommandTimeout(20*time.Second), core.WithTTL(80*time.Second))
	return &demotion{cluster, cluster.MasterOf(key), locks}
}

// during calls do, which waits for replicas, demotes the master meanwhile, and returns the
// error of do.
func (d *demotion) during(t *testing.T, do func() error) error {
	t.Helper()
	rdb := d.master.Client(t)
	d.master.RefuseReplicas(true)
	done := make(chan error, 1)
	go func() { done <- do() }()
	suite.Eventually(t, "WAIT blocks on the master", func() bool {
		return blocked.MatchString(rdb.ClientList(t.Context()).Val())
	})
	d.cluster.Takeover(d.master)
	return suite.Receive(t, "the call that waits for replicas returns", done)
}

// The server ends WAIT with the error UNBLOCKED. The waiter gets the lock on the next
// master.
func TestWaiterSurvivesDemotionDuringWAIT(t *testing.T) {
	t.Parallel()
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

// Commit retries for two seconds, and the next master accepts the commit.
func TestCommitSurvivesDemotionDuringWAIT(t *testing.T) {
	t.Parallel()
	suite.Full(t, "repeats the demotion during a commit")
	d := newDemotion(t, "reqlock:i:k")
	other := 0 // a key of the same master: its commit loads the script there
	for d.cluster.MasterOf(fmt.Sprint("reqlock:i:other", other)) != d.master {
		other++
	}
	noError(t, begin(t, d.locks, fmt.Sprint("other", other)).Commit(t.Context(), nil))
	attempt := begin(t, d.locks, "k")
	if err := d.during(t, func() error { return attempt.Commit(context.Background(), []byte("done")) }); err != nil {
		t.Errorf("commit: %v", err)
	}
	wantReplay(t, d.locks, "k", "done")
}
