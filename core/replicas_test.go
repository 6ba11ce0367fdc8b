package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

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
			if refusal, ok := core.RefusalOf(err); !ok || refusal.HTTP != 503 {
				t.Errorf("%s: %+v", what, refusal)
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
		waited := start(func() error { return errorOf(waiting.Lock(ctx, "k")) })
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
