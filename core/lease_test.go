package core_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestNilLeaseDoesNothing(t *testing.T) {
	t.Parallel()
	var lease *core.Lease
	if lease.Key() != "" || lease.Token() != "" || !lease.ValidUntil().IsZero() || lease.Context() == nil ||
		lease.Extend(t.Context(), time.Second) != nil || lease.Release(t.Context()) != nil {
		t.Error("a method of a nil lease has an effect")
	}
}

// Several goroutines extend and release one lease. Each call either finds the lease alive
// or reports its end, and the lock is released once.
func TestLeaseIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks, events := observed(t, rdb)
	lease := lock(t, locks, "k")
	token := lease.Token()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if lease.Key() != "k" || lease.Token() != token || lease.ValidUntil().IsZero() {
				t.Errorf("key %q, valid until %v", lease.Key(), lease.ValidUntil())
			}
			if err := lease.Extend(t.Context(), time.Minute); err != nil && !errors.Is(err, core.ErrLost) {
				t.Errorf("extend: %v", err)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Errorf("release: %v", err)
			}
			if lease.Context().Err() == nil {
				t.Error("the context has not ended with the lease")
			}
			wantError(t, lease.Extend(t.Context(), time.Minute), core.ErrLost)
		})
	}
	group.Wait()
	if released := events.of(core.Released); len(released) != 1 || released[0].Err != nil {
		t.Errorf("released: %+v", released)
	}
	if locked(t.Context(), rdb, "k") != 0 {
		t.Error("the key is still locked")
	}
}

func testExtend(t *testing.T, servers *deployment) {
	rdb := servers.Client(t)
	lease := lock(t, servers.newLocker(t, rdb, core.WithRenewal(false)), "k")
	if err := lease.Extend(t.Context(), 0); err == nil {
		t.Error("a TTL of 0 is accepted")
	}
	noError(t, lease.Extend(t.Context(), time.Minute))
	if left := time.Until(lease.ValidUntil()); left < 50*time.Second || rdb.PTTL(t.Context(), servers.name("k")).Val() < 50*time.Second {
		t.Errorf("%v left", left)
	}
	release(t, lease)
}

func TestMaxHoldEndsTheContext(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t), core.WithMaxHold(20*time.Millisecond))
	err := locks.Do(t.Context(), "k", func(ctx context.Context) error {
		suite.AwaitClosed(t, "the context ends", ctx.Done())
		return context.Cause(ctx)
	})
	wantError(t, err, core.ErrMaxHold, core.ErrLost)
	release(t, lock(t, locks.With(core.WithMaxHold(time.Minute)), "k"))
}

func TestMinHoldKeepsTheKeyLocked(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	const minHold = 2 * time.Second
	locks, other := newLocker(t, server.Client(t), core.WithMinHold(minHold)), newLocker(t, server.Client(t))
	begun := time.Now()
	ran := false
	if err := locks.Do(t.Context(), "cron", func(context.Context) error { ran = true; return nil }); err != nil || !ran {
		t.Fatalf("ran: %v, %v", ran, err)
	}
	for _, l := range []*core.Locker{locks, other} {
		wantError(t, errorOf(l.TryLock(t.Context(), "cron")), core.ErrBusy)
	}
	left := server.Client(t).PTTL(t.Context(), "reqlock:cron").Val()
	if left <= 0 || left > minHold {
		t.Errorf("the key stays for %v", left)
	}
	lease := lock(t, other, "cron")
	if took := time.Since(begun); took < minHold {
		t.Errorf("another process got the key after %v", took)
	}
	release(t, lease)
}

// A request that gets only some of its keys has done nothing, and frees them at once.
func TestMinHoldOfRefusedRequestKeepsNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	locks, other := newLocker(t, server.Client(t), core.WithMinHold(time.Minute), core.WithWait(0)), newLocker(t, server.Client(t))
	held := lock(t, other, "b")
	err := locks.DoAll(t.Context(), []string{"a", "b"}, func(context.Context) error { return errors.New("it ran") })
	wantError(t, err, core.ErrBusy)
	release(t, lock(t, other, "a"))
	release(t, held)
}

// The cause of the context is the loss of the lease, also if the context is made after the
// loss and after the end of its parent.
func TestContextMadeAfterTheLossHasItsCause(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	locks := newLocker(t, server.Client(t), core.WithTTL(200*time.Millisecond), core.WithRenewal(false))
	for _, early := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		lease, err := locks.Lock(ctx, "k")
		noError(t, err)
		if early {
			lease.Context()
		}
		suite.Eventually(t, "the lease is lost", func() bool { return errors.Is(lease.Extend(context.Background(), time.Millisecond), core.ErrLost) })
		if early {
			suite.AwaitClosed(t, "the end of the context", lease.Context().Done()) // Extend may return a moment before
		}
		cancel()
		if cause := context.Cause(lease.Context()); !errors.Is(cause, core.ErrLost) {
			t.Errorf("early %v: the cause is %v", early, cause)
		}
		_ = lease.Release(context.Background())
	}
}

// boundedBy is a context with the validity of a lease as its deadline.
type boundedBy struct {
	context.Context
	lease *core.Lease
}

func (b boundedBy) Deadline() (time.Time, bool) { return b.lease.ValidUntil(), true }

func TestLockUnderContextThatReadsALease(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, redistest.Reuse(t).Client(t))
	outer := lock(t, locks, "outer")
	for i := range 1000 { // about one of 64 keys is in the same shard of the engine as the outer key
		done := make(chan struct{})
		go func() {
			defer close(done)
			lease, err := locks.TryLock(boundedBy{t.Context(), outer}, string(rune('a'+i)))
			if err != nil {
				t.Error(err)
			}
			_ = lease.Release(t.Context())
		}()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			panic("TryLock does not return: deadlock")
		}
	}
	release(t, outer)
}
