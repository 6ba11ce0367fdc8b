package core_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The replica timeout is the longest one that WithReplicas allows. The server does not have
// the scripts, as after a failover.
func TestLongestReplicaTimeoutFitsIntoACommand(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	server.Grant(redistest.ReplicaRights)
	locks := newLocker(t, server.Client(t), core.WithReplicas(1, 500*time.Millisecond), core.WithCommandTimeout(2*time.Second))
	wantFinding(t, locks.Check(t.Context()), "only 0 of 1 replicas", "WithReplicas")
	noError(t, server.Client(t).ScriptFlush(t.Context()).Err())
	_, err := locks.TryLock(t.Context(), "k")
	if err == nil || !strings.Contains(err.Error(), tooFew) {
		t.Errorf("try: %v", err)
	}
}

// Refusals and replays need no replicas. They share a batch with commands that wait for
// replicas for the longest time that is allowed.
func TestReplayDoesNotNeedReplicas(t *testing.T) {
	t.Parallel()
	master := redistest.StartReplicated(t)
	master.Grant(redistest.ReplicaRights)
	locks := newLocker(t, master.Client(t), core.WithReplicas(1, 500*time.Millisecond), core.WithCommandTimeout(2*time.Second))
	noError(t, begin(t, locks, "order").Commit(t.Context(), []byte("done")))
	master.RefuseReplicas(true)
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for i := range 4 {
		others.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_, _ = locks.Begin(ctx, fmt.Sprint("other", i, " ", n), []byte("f"))
			}
		})
	}
	for range 2 {
		wantReplay(t, locks, "order", "done")
	}
	cancel()
	others.Wait()
}

// An abort does not wait for replicas. If a failover loses the abort, the attempt counts as
// interrupted in other processes.
func TestLostAbortLeavesAnInterruptedAttempt(t *testing.T) {
	t.Parallel()
	sentinels := redistest.StartSentinel(t)
	for _, server := range sentinels.Servers() {
		server.Grant(redistest.ReplicaRights)
	}
	options := []core.Option{core.WithReplicas(2, 250*time.Millisecond), core.WithCommandTimeout(time.Second), core.WithTTL(4 * time.Second)}
	locks, other := newLocker(t, sentinels.Client(t), options...), newLocker(t, sentinels.Client(t), options...)
	attempt := begin(t, locks.With(core.WithWait(20*time.Second)), "order") // replicas may be slow on a busy machine
	sentinels.Master().RefuseReplicas(true)
	noError(t, attempt.Abort(t.Context()))
	sentinels.Failover()
	suite.Eventually(t, "the attempt is interrupted", func() bool {
		_, err := other.Begin(t.Context(), "order", []byte("f"))
		return errors.Is(err, core.ErrOutcomeUnknown)
	})
}

func TestCommitOnTooFewReplicasFailsAndIsReplayed(t *testing.T) {
	onReplicated(t, func(t *testing.T, servers *replicated) {
		events := &recorder{}
		locks := newLocker(t, servers.connect(t), core.WithReplicas(1, 500*time.Millisecond), core.WithCommandTimeout(4*time.Second),
			core.WithObserver(events.record))
		waiting := locks.With(core.WithWait(20 * time.Second)) // replicas may be slow on a busy machine
		attempt := begin(t, waiting, "order")
		servers.refuse(true)
		if err := attempt.Commit(t.Context(), []byte("done")); !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), tooFew) {
			t.Errorf("commit: %v", err)
		}
		if committed := events.of(core.Committed); len(committed) != 1 || committed[0].Err == nil {
			t.Errorf("committed: %+v", committed)
		}
		wantReplay(t, locks, "order", "done")
		wantError(t, errorOf(locks.Begin(t.Context(), "other", []byte("f"))), core.ErrUnavailable)

		servers.refuse(false)
		servers.awaitReplicas(t, locks)
		wantReplay(t, locks, "order", "done")
		next := begin(t, waiting, "other") // the refused attempt has left no record
		if next.Number() != 1 {
			t.Errorf("attempt %d", next.Number())
		}
		noError(t, next.Done(t.Context()))
	})
}

// Only WithReplicas needs the right to send WAIT.
func TestCheckNamesTheMissingRightForReplicas(t *testing.T) {
	t.Parallel()
	master := redistest.StartReplicated(t)
	admin := master.Client(t)
	grant := func(rule string) {
		t.Helper()
		command := []any{"acl", "setuser", "alice"}
		for _, right := range strings.Fields(rule) {
			command = append(command, right)
		}
		noError(t, admin.Do(t.Context(), command...).Err())
	}
	grant("reset on >secret resetchannels " + redistest.Rights)
	rdb := master.Client(t, as("alice", "secret"))
	noError(t, newLocker(t, rdb).Check(t.Context()))
	locks := newLocker(t, rdb, withReplica()...)
	wantFinding(t, locks.Check(t.Context()), "grant it "+redistest.ReplicaRights)
	wantError(t, errorOf(locks.Lock(t.Context(), "k")), core.ErrUnavailable) // does not wait: a missing right does not pass
	awaitNoKeys(t, admin)
	grant(redistest.ReplicaRights)
	suite.Eventually(t, "Check finds no problem", func() bool { return locks.Check(t.Context()) == nil })
	release(t, lock(t, locks, "k"))
}

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
	done := start(func() error { return do() })
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

// Shared leases count once a replica has acknowledged them, like any others.
func TestSharedLocksOnReplicas(t *testing.T) {
	onReplicated(t, func(t *testing.T, servers *replicated) {
		locks, other := newLocker(t, servers.connect(t), withReplica()...), newLocker(t, servers.connect(t), withReplica()...)
		for i := range 3 {
			key := fmt.Sprint("k", i)
			readers := []*core.Lease{lock(t, locks.With(core.WithShared(true)), key), lock(t, other.With(core.WithShared(true)), key)}
			wantError(t, errorOf(other.TryLock(t.Context(), key)), core.ErrBusy)
			writer := startLock(t, other, key)
			suite.Eventually(t, "the writer is in the queue", func() bool {
				return servers.rdb.LLen(t.Context(), "{reqlock:"+key+"}:q").Val() == 1
			})
			wantError(t, errorOf(locks.With(core.WithShared(true)).TryLock(t.Context(), key)), core.ErrBusy)
			for _, reader := range readers {
				release(t, reader)
			}
			release(t, writer())
			permits := []*core.Lease{lock(t, locks.With(core.WithPermits(2)), key), lock(t, other.With(core.WithPermits(2)), key)}
			wantError(t, errorOf(locks.With(core.WithPermits(2)).TryLock(t.Context(), key)), core.ErrBusy)
			for _, permit := range permits {
				release(t, permit)
			}
		}
		awaitNoKeys(t, servers.rdb)
	})
}

// A shared lease that too few replicas have is not granted. It leaves nothing, and the leases
// beside it stay.
func TestTooFewReplicasGrantNoSharedLock(t *testing.T) {
	onReplicated(t, func(t *testing.T, servers *replicated) {
		locks := newLocker(t, servers.connect(t), withoutReplica()...)
		servers.awaitReplicas(t, locks)
		for name, shared := range map[string]core.Option{"reader": core.WithShared(true), "permit": core.WithPermits(2)} {
			view := locks.With(shared)
			held := lock(t, view, name)
			servers.refuse(true)
			for _, fencing := range []bool{false, true} {
				if fencing && name == "permit" {
					continue
				}
				_, err := view.With(core.WithFencing(fencing)).TryLock(t.Context(), name)
				if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), tooFew) {
					t.Errorf("%s, fencing %v: %v", name, fencing, err)
				}
			}
			suite.Eventually(t, "only the lease of before is left", func() bool {
				out := servers.rdb.ZRange(t.Context(), "{reqlock:"+name+"}:s", 0, -1).Val()
				return len(out) == 1 && out[0] == held.Token()
			})
			servers.refuse(false)
			servers.awaitReplicas(t, locks)
			release(t, held)
			awaitNoKeys(t, servers.rdb)
		}
	})
}
