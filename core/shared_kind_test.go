package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// A caller that may not wait gets ErrBusy while all permits are held, in any process, and a
// released permit is free at once.
func testPermitsAreRefused(t *testing.T, servers *deployment) {
	here := servers.newLocker(t, servers.Client(t), core.WithPermits(2))
	there := servers.newLocker(t, servers.Client(t), core.WithPermits(2))
	first, second := lock(t, here, "k"), lock(t, there, "k")
	for _, locks := range []*core.Locker{here, there} {
		_, err := locks.TryLock(t.Context(), "k")
		wantError(t, err, core.ErrBusy)
		wantError(t, errorOf(locks.With(core.WithShared(false)).TryLock(t.Context(), "k")), core.ErrBusy)
	}
	release(t, first)
	third, err := there.TryLock(t.Context(), "k")
	noError(t, err)
	release(t, second)
	release(t, third)
	release(t, lock(t, here.With(core.WithShared(false)), "k"))
}

// Two numbers, as during a deploy: each process obeys its own, and revokes nothing.
func testPermitsDuringDeploy(t *testing.T, servers *deployment) {
	before := servers.newLocker(t, servers.Client(t), core.WithPermits(3))
	after := servers.newLocker(t, servers.Client(t), core.WithPermits(2))
	old := []*core.Lease{lock(t, before, "k"), lock(t, before, "k"), lock(t, before, "k")}
	wantError(t, errorOf(after.TryLock(t.Context(), "k")), core.ErrBusy)
	release(t, old[0])
	wantError(t, errorOf(after.TryLock(t.Context(), "k")), core.ErrBusy)
	release(t, old[1])
	fresh := lock(t, after, "k")
	wantError(t, errorOf(after.TryLock(t.Context(), "k")), core.ErrBusy)
	third := lock(t, before, "k")
	for _, lease := range []*core.Lease{old[2], fresh, third} {
		release(t, lease)
	}
}

// A client of the classic recipe is excluded as long as a shared lease is held, and excludes
// all shared leases.
func testClassicRecipeAndSharedLeases(t *testing.T, servers *deployment) {
	rdb := servers.Client(t)
	setNX := func() bool {
		return rdb.SetArgs(t.Context(), servers.name("k"), "a foreign value", redis.SetArgs{Mode: "NX", TTL: time.Minute}).Err() == nil
	}
	for _, opt := range []core.Option{core.WithPermits(3), core.WithShared(true)} {
		locks := servers.newLocker(t, servers.Client(t), opt)
		first, second := lock(t, locks, "k"), lock(t, locks, "k")
		release(t, first)
		if setNX() {
			t.Error("a classic client took a key that is shared")
		}
		release(t, second)
		if !setNX() {
			t.Error("the key is not free for a classic client")
		}
		wantError(t, errorOf(locks.TryLock(t.Context(), "k")), core.ErrBusy)
		rdb.Del(t.Context(), servers.name("k"))
	}
}

// Readers that overlap have one number, and it rises with each writer. A single permit has a
// number of its own for each holder.
func testFencesOfSharedLeases(t *testing.T, servers *deployment) {
	writers := servers.newLocker(t, servers.Client(t), core.WithFencing(true))
	readers := []*core.Locker{
		writers.With(core.WithShared(true)),
		servers.newLocker(t, servers.Client(t), core.WithFencing(true), core.WithShared(true)),
	}
	var last int64
	for range 3 {
		writer := lock(t, writers, "k")
		if writer.Fence() <= last {
			t.Errorf("the writer has %d after %d", writer.Fence(), last)
		}
		last = writer.Fence()
		release(t, writer)
		a, b := lock(t, readers[0], "k"), lock(t, readers[1], "k")
		if a.Fence() <= last || a.Fence() != b.Fence() {
			t.Errorf("readers have %d and %d after %d", a.Fence(), b.Fence(), last)
		}
		last = a.Fence()
		release(t, a)
		release(t, b)
	}
	one := writers.With(core.WithPermits(1))
	for range 3 {
		err := one.Do(t.Context(), "k", func(ctx context.Context) error {
			lease, _ := core.LeaseFromContext(ctx)
			if lease.Fence() <= last {
				t.Errorf("the permit has %d after %d", lease.Fence(), last)
			}
			last = lease.Fence()
			return nil
		})
		noError(t, err)
	}
}
