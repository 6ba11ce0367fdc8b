package core_test

import (
	"context"
	"errors"
	"fmt"
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

// The default command timeout, 500 ms, is too short on a busy machine to find out that
// replicas are missing. So the error may have another text.
func TestLongestReplicaTimeoutByDefaultLeavesNoLock(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Grant(redistest.ReplicaRights)
	rdb := server.Client(t)
	locks := newLocker(t, rdb, core.WithReplicas(1, 125*time.Millisecond), core.WithCommandTimeout(500*time.Millisecond))
	for range 2 { // the server has the scripts the second time
		_, err := locks.TryLock(t.Context(), "k")
		if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), tooFew) && !strings.Contains(err.Error(), "no reply within") {
			t.Errorf("try: %v", err)
		}
		awaitNoKeys(t, rdb)
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

// A release does not wait for replicas, also if a caller of the same process waits for the
// lock.
func TestReleaseWithLocalWaiterDoesNotWaitForReplicas(t *testing.T) {
	t.Parallel()
	master, events := redistest.StartReplicated(t), &recorder{}
	master.Grant(redistest.ReplicaRights)
	rdb := master.Client(t, func(o *redis.Options) { o.ReadTimeout = 5 * time.Minute })
	locks := newLocker(t, rdb, core.WithReplicas(1, time.Minute), core.WithCommandTimeout(4*time.Minute), core.WithTTL(16*time.Minute),
		core.WithObserver(events.record))
	lease := lock(t, locks, "k")
	noError(t, lease.Extend(t.Context(), 20*time.Minute)) // a lease with another TTL is not passed on in the process
	next := startLock(t, locks, "k")
	suite.Eventually(t, "the second caller waits", func() bool { return len(events.of(core.Waiting)) == 1 })
	master.RefuseReplicas(true)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	noError(t, lease.Release(ctx))
	master.RefuseReplicas(false)
	release(t, next())
}

// An abort does not wait for replicas. If a failover loses the abort, the attempt counts as
// interrupted.
func TestLostAbortLeavesAnInterruptedAttempt(t *testing.T) {
	t.Parallel()
	sentinels := redistest.StartSentinel(t)
	for _, server := range sentinels.Servers() {
		server.Grant(redistest.ReplicaRights)
	}
	locks := newLocker(t, sentinels.Client(t), core.WithReplicas(2, 250*time.Millisecond),
		core.WithCommandTimeout(time.Second), core.WithTTL(4*time.Second))
	attempt := begin(t, locks.With(core.WithWait(20*time.Second)), "order") // replicas may be slow on a busy machine
	sentinels.Master().RefuseReplicas(true)
	noError(t, attempt.Abort(t.Context()))
	sentinels.Failover()
	suite.Eventually(t, "the attempt is interrupted", func() bool {
		_, err := locks.Begin(t.Context(), "order", []byte("f"))
		return errors.Is(err, core.ErrInterrupted)
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
		noError(t, next.Seal(t.Context()))
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
