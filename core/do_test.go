package core_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

func TestDoReleasesTheLock(t *testing.T) {
	t.Parallel()
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
		t.Errorf("the function has returned nil, got %v", err)
	}
	release(t, lock(t, locks, "k"))
}

func testSeveralKeys(t *testing.T, servers *deployment) {
	rdb := servers.Client(t)
	locks := servers.newLocker(t, rdb)
	events := &recorder{}
	recorded := servers.newLocker(t, rdb, core.WithObserver(events.record))

	t.Run("each key is taken once, in byte order", func(t *testing.T) {
		err := recorded.DoAll(t.Context(), []string{"b", "c", "a", "b"}, func(ctx context.Context) error {
			if n := servers.locked(ctx, rdb, "a", "b", "c"); n != 3 {
				t.Errorf("%d keys are locked", n)
			}
			if lease, ok := core.LeaseFromContext(ctx); !ok || lease.Key() != "b" {
				t.Errorf("the lease in the context has the key %q, want the first key", lease.Key())
			}
			// A nested call finds each key held.
			return recorded.DoAll(ctx, []string{"c", "a", "b"}, func(context.Context) error { return nil })
		})
		noError(t, err)
		var taken []string
		for _, e := range events.of(core.Acquired) {
			taken = append(taken, e.Key.Raw())
		}
		if !slices.Equal(taken, []string{"a", "b", "c"}) || len(events.of(core.Released)) != 3 {
			t.Errorf("taken %v, released %v", taken, events.of(core.Released))
		}
		if n := servers.locked(t.Context(), rdb, "a", "b", "c"); n != 0 {
			t.Errorf("%d keys are still locked", n)
		}
	})

	t.Run("a timeout releases the other keys", func(t *testing.T) {
		busy := lock(t, locks, "c")
		begun := time.Now()
		err := recorded.With(core.WithWait(time.Second)).DoAll(t.Context(), []string{"a", "b", "c"}, func(context.Context) error {
			t.Error("ran")
			return nil
		})
		wantError(t, err, core.ErrWaitTimeout)
		if took := time.Since(begun); took > 10*time.Second { // one wait, and a busy machine
			t.Errorf("took %v", took)
		}
		if servers.locked(t.Context(), rdb, "a", "b") != 0 {
			t.Error("the other keys are still locked")
		}
		release(t, busy)
	})

	t.Run("opposite orders of keys do not deadlock", func(t *testing.T) {
		var group sync.WaitGroup
		for i := range 40 {
			group.Go(func() {
				keys := []string{"a", "b"}
				if i%2 == 0 {
					keys = []string{"b", "a"}
				}
				if err := []*core.Locker{locks, recorded}[i/2%2].DoAll(t.Context(), keys, func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	})
}

func TestNestedLockSharesTheLock(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks := newLocker(t, rdb)
	other := newLocker(t, rdb)
	outer := lock(t, locks, "k")
	ctx := outer.Context()

	inner, err := locks.With(core.WithTTL(time.Minute)).Lock(ctx, "k")
	noError(t, err)
	if inner.Token() != outer.Token() || inner.Key() != "k" || !inner.ValidUntil().Equal(outer.ValidUntil()) {
		t.Error("the inner lease does not share the lock of the outer lease")
	}
	if got, _ := core.LeaseFromContext(inner.Context()); got != inner {
		t.Error("the context carries another lease")
	}
	release(t, inner)
	if rdb.Get(t.Context(), "reqlock:k").Val() != outer.Token() {
		t.Error("the inner release freed the lock")
	}
	between := lock(t, locks, "between")
	deep, err := locks.TryLock(context.WithoutCancel(between.Context()), "k")
	wantError(t, err, core.ErrBusy) // between is not nested in the outer lease
	release(t, deep)
	release(t, between)
	wantError(t, errorOf(other.TryLock(ctx, "k")), core.ErrBusy) // another Locker counts as another process

	release(t, outer)
	again, err := locks.Lock(context.WithoutCancel(ctx), "k")
	if err != nil || again.Token() == outer.Token() {
		t.Errorf("a lock after the release of the outer lease: %v", err)
	}
	release(t, again)
}

func TestFailOpenIsForFaultsOnly(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr(), DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	locks, events := observed(t, rdb, core.WithFailOpen(true), core.WithWait(0))
	run := func(ctx context.Context) (ran bool, err error) {
		err = locks.Do(ctx, "k", func(ctx context.Context) error {
			_, locked := core.LeaseFromContext(ctx)
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
	ended := endedContext()
	if ran, err := run(ended); ran || err == nil {
		t.Errorf("a caller with a context that has ended: ran %v, %v", ran, err)
	}
	mini.Close()
	if ran, err := run(t.Context()); !ran || err != nil {
		t.Errorf("fault: ran %v, %v", ran, err)
	}
	if got := events.of(core.Unlocked); len(got) != 1 || !errors.Is(got[0].Err, core.ErrUnavailable) {
		t.Errorf("unlocked: %v", got)
	}
	_, err := locks.Lock(t.Context(), "k")
	wantError(t, err, core.ErrUnavailable)
	_ = locks.Close(t.Context())
	if ran, err := run(t.Context()); ran || !errors.Is(err, core.ErrClosed) {
		t.Errorf("closed: ran %v, %v", ran, err)
	}
}

// An error with several causes has a text of one line, and is each of them.
func TestErrorHasOneLine(t *testing.T) {
	t.Parallel()
	cause := errors.New("the request was dropped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := newLocker(t, newEmbedded(t)).Lock(ctx, "a")
	for _, want := range []error{context.Canceled, cause} {
		if !errors.Is(err, want) {
			t.Errorf("%v is not %v", err, want)
		}
	}
	if text := err.Error(); strings.Contains(text, "\n") || !strings.HasSuffix(text, "context canceled; the request was dropped") {
		t.Errorf("the text is %q", text)
	}
}
