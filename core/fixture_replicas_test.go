package core_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// oneReplica demands one replica and waits for it briefly: where the replica is away, the
// time is lost.
func oneReplica() core.Option { return core.WithReplicas(1, 50*time.Millisecond) }

// withReplica returns options for tests in which the replica is connected. The timeouts
// have room for a busy machine.
func withReplica(opts ...core.Option) []core.Option {
	return append([]core.Option{
		core.WithReplicas(1, time.Second), core.WithCommandTimeout(4 * time.Second), core.WithTTL(16 * time.Second),
	}, opts...)
}

// withoutReplica returns options for tests in which the replica is refused. The command
// timeout has room for a busy machine.
func withoutReplica() []core.Option {
	return []core.Option{oneReplica(), core.WithCommandTimeout(4 * time.Second), core.WithTTL(16 * time.Second)}
}

// tooFew is the text of the error where the one replica is away.
const tooFew = "only 0 of 1 replicas have acknowledged it"

// A replicated deployment is one in which each master has a replica.
type replicated struct {
	servers []*redistest.Server
	connect func(t *testing.T) redis.UniversalClient
	rdb     redis.UniversalClient // for the test's own commands
}

// newReplicated returns a deployment of these servers. Clients may send WAIT to them.
func newReplicated(t *testing.T, servers []*redistest.Server, connect func(t *testing.T) redis.UniversalClient) *replicated {
	t.Helper()
	for _, server := range servers {
		server.Grant(redistest.ReplicaRights)
	}
	return &replicated{servers, connect, connect(t)}
}

// onReplicated runs the test on a master with a replica. In the full tier it also runs the
// test on each kind of Redis that has replicas.
func onReplicated(t *testing.T, test func(t *testing.T, servers *replicated)) {
	t.Helper()
	t.Parallel()
	t.Run("master", func(t *testing.T) {
		t.Parallel()
		master := redistest.StartReplicated(t)
		test(t, newReplicated(t, []*redistest.Server{master}, func(t *testing.T) redis.UniversalClient {
			t.Helper()
			return master.Client(t)
		}))
	})
	for _, kind := range []redistest.Kind{redistest.OnSentinels, redistest.OnCluster} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			suite.Full(t, "repeats the test on each kind of Redis")
			d := kind.Start(t)
			test(t, newReplicated(t, d.Servers(), func(t *testing.T) redis.UniversalClient {
				t.Helper()
				return d.Client(t)
			}))
		})
	}
}

// refuse cuts the masters off from their replicas (on), or lets the replicas connect.
func (r *replicated) refuse(on bool) {
	for _, server := range r.servers {
		server.RefuseReplicas(on)
	}
}

// awaitReplicas returns once the masters have their replicas.
func (r *replicated) awaitReplicas(t *testing.T, locks *core.Locker) {
	t.Helper()
	for i := range 20 { // keys of all masters of a cluster
		suite.Eventually(t, "the replicas are connected", func() bool {
			lease, err := locks.TryLock(t.Context(), fmt.Sprint("ready", i))
			if err != nil {
				return false
			}
			release(t, lease)
			return true
		})
	}
}

// keysLeft returns all keys in Redis except fence counters.
func keysLeft(t *testing.T, rdb redis.UniversalClient) []string {
	t.Helper()
	keys, err := redistest.Keys(t.Context(), rdb, "*")
	if err != nil {
		return []string{err.Error()}
	}
	return slices.DeleteFunc(keys, func(key string) bool { return strings.HasSuffix(key, ":f") })
}

// awaitNoKeys returns once Redis has no keys except fence counters.
func awaitNoKeys(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	suite.Eventually(t, "Redis has no keys", func() bool { return len(keysLeft(t, rdb)) == 0 })
}
