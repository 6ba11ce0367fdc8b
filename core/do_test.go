package core_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

func TestDoReleasesHoweverItEnds(t *testing.T) {
	locks := newLocker(t, newEmbedded(t))
	fault := errors.New("the function's own")
	if err := locks.Do(t.Context(), "k", func(context.Context) error { return fault }); err != fault { //nolint:errorlint // untouched
		t.Errorf("got %v", err)
	}
	release(t, lock(t, locks, "k"))

	func() {
		defer func() {
			if got := recover(); got != any(fault) {
				t.Errorf("panic %v", got)
			}
		}()
		_ = locks.Do(t.Context(), "k", func(context.Context) error { panic(fault) })
	}()
	release(t, lock(t, locks, "k"))

	var group sync.WaitGroup
	group.Go(func() {
		_ = locks.Do(t.Context(), "k", func(context.Context) error { runtime.Goexit(); return nil })
	})
	group.Wait()
	release(t, lock(t, locks, "k"))

	ctx, cancel := context.WithCancel(t.Context())
	if err := locks.Do(ctx, "k", func(context.Context) error { cancel(); return nil }); err != nil {
		t.Errorf("the function was done, got %v", err)
	}
	release(t, lock(t, locks, "k"))
}

func severalKeys(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	rdb := servers.Client(t)
	locks := newLocker(t, rdb)
	heard := &events{}
	locks2 := newLocker(t, rdb, core.WithObserver(heard.observe))

	t.Run("each once, in byte order", func(t *testing.T) {
		err := locks2.DoAll(t.Context(), []string{"b", "c", "a", "b"}, func(ctx context.Context) error {
			if n := locked(ctx, rdb, "a", "b", "c"); n != 3 {
				t.Errorf("%d keys are locked", n)
			}
			if lease, ok := core.FromContext(ctx); !ok || lease.Key() != "b" {
				t.Errorf("the lease in the context is of %q, want that of the first key", lease.Key())
			}
			// Each of them counts as held.
			return locks2.DoAll(ctx, []string{"c", "a", "b"}, func(context.Context) error { return nil })
		})
		if err != nil {
			t.Fatal(err)
		}
		var taken []string
		for _, e := range heard.of(core.Acquired) {
			taken = append(taken, e.Key.Raw())
		}
		if !slices.Equal(taken, []string{"a", "b", "c"}) || len(heard.of(core.Released)) != 3 {
			t.Errorf("taken %v, released %v", taken, heard.of(core.Released))
		}
		if n := locked(t.Context(), rdb, "a", "b", "c"); n != 0 {
			t.Errorf("%d keys are left", n)
		}
	})

	t.Run("a failure frees the rest, within one wait", func(t *testing.T) {
		busy := lock(t, locks, "c")
		begun := time.Now()
		err := locks2.With(core.WithWait(time.Second)).DoAll(t.Context(), []string{"a", "b", "c"}, func(context.Context) error {
			t.Error("ran")
			return nil
		})
		wantError(t, err, core.ErrWaitTimeout)
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		if locked(t.Context(), rdb, "a", "b") != 0 {
			t.Error("keys are left")
		}
		release(t, busy)
	})

	t.Run("both directions", func(t *testing.T) {
		var group sync.WaitGroup
		for i := range 40 {
			group.Go(func() {
				keys := []string{"a", "b"}
				if i%2 == 0 {
					keys = []string{"b", "a"}
				}
				if err := []*core.Locker{locks, locks2}[i/2%2].DoAll(t.Context(), keys, func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	})
}

// locked counts those of the keys that are locked.
func locked(ctx context.Context, rdb redis.UniversalClient, keys ...string) (n int64) {
	for _, key := range keys { // one by one: they need not share a slot
		n += rdb.Exists(ctx, "reqlock:"+key).Val()
	}
	return n
}

//faults:row 44
func TestNestedUseOfTheSameKey(t *testing.T) {
	rdb := newEmbedded(t)
	locks := newLocker(t, rdb)
	other := newLocker(t, rdb)
	outer := lock(t, locks, "k")
	ctx := outer.Context()

	inner, err := locks.With(core.WithTTL(time.Minute)).Lock(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	if inner.Token() != outer.Token() || inner.Key() != "k" || !inner.ValidUntil().Equal(outer.ValidUntil()) {
		t.Error("the inner lease is not the outer one")
	}
	if got, _ := core.FromContext(inner.Context()); got != inner {
		t.Error("the context has another lease")
	}
	release(t, inner)
	if rdb.Get(t.Context(), "reqlock:k").Val() != outer.Token() {
		t.Error("the inner release freed the lock")
	}
	between := lock(t, locks, "between")
	deep, err := locks.TryLock(context.WithoutCancel(between.Context()), "k")
	wantError(t, err, core.ErrBusy) // between was not locked under the outer lease
	release(t, deep)
	release(t, between)
	_, err = other.TryLock(ctx, "k")
	wantError(t, err, core.ErrBusy) // another Locker is another process

	release(t, outer)
	again, err := locks.Lock(context.WithoutCancel(ctx), "k")
	if err != nil || again.Token() == outer.Token() {
		t.Errorf("after the outer lease it locks anew: %v", err)
	}
	release(t, again)
}

func TestANilLeaseDoesNothing(t *testing.T) {
	var lease *core.Lease
	if lease.Key() != "" || lease.Token() != "" || !lease.ValidUntil().IsZero() || lease.Context() == nil ||
		lease.Extend(t.Context(), time.Second) != nil || lease.Release(t.Context()) != nil {
		t.Error("a nil lease did something")
	}
}

func TestALeaseIsSafeForConcurrentUse(t *testing.T) {
	locks := newLocker(t, newEmbedded(t))
	lease := lock(t, locks, "k")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			_, _, _ = lease.Key(), lease.Token(), lease.ValidUntil()
			_ = lease.Extend(t.Context(), time.Second)
			_ = lease.Context().Err()
			_ = lease.Release(t.Context())
		})
	}
	group.Wait()
	release(t, lease)
	release(t, lock(t, locks, "k"))
}

func extendLivesLonger(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	rdb := servers.Client(t)
	lease := lock(t, newLocker(t, rdb, core.WithRenewal(false)), "k")
	if err := lease.Extend(t.Context(), 0); err == nil {
		t.Error("a TTL of nothing is no error")
	}
	if err := lease.Extend(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	if left := time.Until(lease.ValidUntil()); left < 50*time.Second || rdb.PTTL(t.Context(), "reqlock:k").Val() < 50*time.Second {
		t.Errorf("%v left", left)
	}
	release(t, lease)
}

func TestTheLongestHoldEndsTheContext(t *testing.T) {
	locks := newLocker(t, newEmbedded(t), core.WithMaxHold(20*time.Millisecond))
	err := locks.Do(t.Context(), "k", func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	wantError(t, err, core.ErrMaxHold, core.ErrLost)
	release(t, lock(t, locks, "k"))
}

//faults:row 42: only where it was chosen
func TestFailOpenIsForFaultsAlone(t *testing.T) {
	mini := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr(), DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	heard := &events{}
	locks := newLocker(t, rdb, core.WithFailOpen(true), core.WithObserver(heard.observe), core.WithWait(0))
	run := func(ctx context.Context) (ran bool, err error) {
		err = locks.Do(ctx, "k", func(ctx context.Context) error {
			_, locked := core.FromContext(ctx)
			ran = !locked
			return nil
		})
		return ran, err
	}

	lease := lock(t, locks, "k")
	if ran, err := run(t.Context()); ran || !errors.Is(err, core.ErrBusy) {
		t.Errorf("contention: ran %v, %v", ran, err)
	}
	release(t, lease)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if ran, err := run(gone); ran || err == nil {
		t.Errorf("a caller that is gone: ran %v, %v", ran, err)
	}
	mini.Close()
	if ran, err := run(t.Context()); !ran || err != nil {
		t.Errorf("fault: ran %v, %v", ran, err)
	}
	if got := heard.of(core.Unlocked); len(got) != 1 || !errors.Is(got[0].Err, core.ErrUnavailable) {
		t.Errorf("the observer heard %v", got)
	}
	_, err := locks.Lock(t.Context(), "k")
	wantError(t, err, core.ErrUnavailable)
	_ = locks.Close(t.Context())
	if ran, err := run(t.Context()); ran || !errors.Is(err, core.ErrClosed) {
		t.Errorf("closed: ran %v, %v", ran, err)
	}
}
