package core_test

import (
	"context"
	"errors"
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

func TestLocksOnReplicas(t *testing.T) {
	onReplicated(t, func(t *testing.T, servers *replicated) {
		locks, other := newLocker(t, servers.connect(t), withReplica()...), newLocker(t, servers.connect(t), withReplica()...)
		noError(t, locks.Check(t.Context()))
		for i := range 6 {
			key := fmt.Sprint("k", i)
			lease := lock(t, locks, key)
			_, err := other.TryLock(t.Context(), key)
			wantError(t, err, core.ErrBusy)
			wantError(t, errorOf(locks.TryLock(t.Context(), key)), core.ErrBusy)
			noError(t, lease.Extend(t.Context(), time.Minute))
			remote := startLock(t, other, key)
			suite.Eventually(t, "the other process is in the queue", func() bool {
				keys, err := redistest.Keys(t.Context(), servers.rdb, "{reqlock:"+key+"}:q")
				return err == nil && len(keys) == 1
			})
			local := startLock(t, locks, key)
			release(t, lease)
			release(t, remote())
			release(t, local())
			if err := locks.With(core.WithFencing(true)).Do(t.Context(), key, func(context.Context) error { return nil }); err != nil {
				t.Errorf("do: %v", err)
			}
		}
		attempt := begin(t, locks, "order")
		noError(t, attempt.Commit(t.Context(), []byte("done")))
		wantReplay(t, other, "order", "done")
	})
}

func TestTooFewReplicasGrantNoLock(t *testing.T) {
	onReplicated(t, func(t *testing.T, servers *replicated) {
		locks := newLocker(t, servers.connect(t), withoutReplica()...)
		servers.awaitReplicas(t, locks)
		servers.refuse(true)
		wantRefused := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), tooFew) {
				t.Errorf("%s: %v", what, err)
			}
			if outcome, ok := core.OutcomeOf(err); !ok || outcome.HTTP != 503 {
				t.Errorf("%s: %+v", what, outcome)
			}
			awaitNoKeys(t, servers.rdb)
		}
		_, err := locks.TryLock(t.Context(), "k")
		wantRefused("try", err)
		_, err = locks.With(core.WithFencing(true)).TryLock(t.Context(), "k")
		wantRefused("try with fencing", err)
		waits, done := locks.With(core.WithWait(2*time.Second)), make(chan error, 1) // longer than the first refusal takes
		go func() {
			done <- waits.Do(t.Context(), "other", func(context.Context) error {
				t.Error("the function runs without the lock")
				return nil
			})
		}()
		_, err = waits.Lock(t.Context(), "k")
		did := suite.Receive(t, "Do returns", done)
		wantRefused("lock", err)
		wantRefused("do", did)
		_, err = locks.With(core.WithFailOpen(true)).TryLock(t.Context(), "k")
		wantRefused("try with fail open", err)

		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		wantError(t, errorOf(locks.Lock(ctx, "k")), context.DeadlineExceeded, core.ErrUnavailable)
		awaitNoKeys(t, servers.rdb)

		waiter := startLock(t, locks, "k")
		servers.refuse(false)
		release(t, waiter())
		servers.awaitReplicas(t, locks)
		awaitNoKeys(t, servers.rdb)

		servers.refuse(true)
		wantFinding(t, locks.Check(t.Context()), "only 0 of 1 replicas", "WithReplicas")
		noError(t, locks.Close(t.Context())) // waits until Check has deleted its keys
		if keys := keysLeft(t, servers.rdb); len(keys) != 0 {
			t.Errorf("check leaves %v", keys)
		}
	})
}

// A waiter keeps the key while it retries, although it was not granted the lock. Other
// callers find the key busy.
func TestKeyIsBusyWhileAWaiterAwaitsReplicas(t *testing.T) {
	onReplicated(t, func(t *testing.T, servers *replicated) {
		waiting, others := newLocker(t, servers.connect(t), withoutReplica()...), newLocker(t, servers.connect(t), withoutReplica()...)
		servers.awaitReplicas(t, others)
		servers.refuse(true)
		ctx, cancel := context.WithCancel(t.Context())
		waited := make(chan error, 1)
		go func() {
			_, err := waiting.Lock(ctx, "k")
			waited <- err
		}()
		suite.Eventually(t, "the waiter has the key", func() bool {
			return servers.rdb.Exists(t.Context(), "reqlock:k").Val() == 1
		})
		for range 3 {
			_, err := others.TryLock(t.Context(), "k")
			wantError(t, err, core.ErrBusy)
			_, err = others.With(core.WithWait(300*time.Millisecond)).Lock(t.Context(), "k")
			if !errors.Is(err, core.ErrWaitTimeout) && !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("lock: %v", err)
			}
		}
		cancel()
		wantError(t, suite.Receive(t, "the waiter returns", waited), context.Canceled, core.ErrUnavailable)
		awaitNoKeys(t, servers.rdb)
		wantError(t, errorOf(others.TryLock(t.Context(), "k")), core.ErrUnavailable)

		servers.refuse(false)
		servers.awaitReplicas(t, others)
		release(t, lock(t, others, "k"))
		awaitNoKeys(t, servers.rdb)
	})
}

func TestLeaseIsLostWithItsReplicas(t *testing.T) {
	onReplicated(t, func(t *testing.T, servers *replicated) {
		locks, events := observed(t, servers.connect(t), oneReplica(), core.WithTTL(2*time.Second))
		lease := lock(t, locks, "k")
		servers.refuse(true)
		suite.AwaitClosed(t, "the lease is lost", lease.Context().Done())
		if cause := context.Cause(lease.Context()); !errors.Is(cause, core.ErrLost) || time.Now().Before(lease.ValidUntil()) {
			t.Errorf("%v, valid for %v", cause, time.Until(lease.ValidUntil()))
		}
		renewed := events.of(core.Renewed)
		hasTooFew := func(e core.Event) bool { return e.Err != nil && strings.Contains(e.Err.Error(), tooFew) }
		if !slices.ContainsFunc(renewed, hasTooFew) || renewed[len(renewed)-1].Err == nil {
			t.Errorf("renewals: %+v", renewed)
		}
		wantError(t, lease.Release(t.Context()), core.ErrLost)
		awaitNoKeys(t, servers.rdb)
	})
}
