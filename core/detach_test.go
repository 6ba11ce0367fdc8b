package core_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

// isFree reports whether another caller gets the key.
func isFree(t *testing.T, locks *core.Locker, key string) bool {
	t.Helper()
	lease, err := locks.TryLock(t.Context(), key)
	if err == nil {
		release(t, lease)
	} else {
		wantError(t, err, core.ErrBusy)
	}
	return err == nil
}

// The work has all locks around it, and the values of the request, until it releases them. Each of them
// has one Released event, as late as that.
func TestDetachTakesAllLocks(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks, events := observed(t, rdb, withoutResend(core.WithMaxHold(time.Minute), core.WithFencing(true))...)
	type traceKey struct{}
	ctx, leave := context.WithCancel(context.WithValue(t.Context(), traceKey{}, "trace"))
	var work *core.LeaseSet
	var before []*core.Lease
	err := locks.Do(ctx, "outer", func(ctx context.Context) error {
		return locks.DoAll(ctx, []string{"b", "a", "outer", "b"}, func(ctx context.Context) (err error) {
			before = core.LeasesFromContext(ctx)
			work, err = core.Detach(ctx)
			noError(t, ctx.Err())
			return err
		})
	})
	noError(t, err)
	leave()
	noError(t, work.Context().Err())
	if work.Context().Value(traceKey{}) != "trace" {
		t.Error("the work has not the values of the request")
	}
	after := core.LeasesFromContext(work.Context())
	for i, lease := range before {
		if got := after[i]; got.Key() != lease.Key() || got.Token() != lease.Token() || got.Fence() != lease.Fence() || got.Fence() == 0 {
			t.Errorf("lease %d is %v with fence %d, not %v with %d", i, got, got.Fence(), lease, lease.Fence())
		}
	}
	if main, _ := core.LeaseFromContext(work.Context()); main.Key() != "b" || main.ValidUntil().Before(time.Now()) {
		t.Errorf("the lease of the work is %v", main)
	}
	for _, key := range []string{"outer", "a", "b"} {
		if isFree(t, locks, key) {
			t.Errorf("%q is free while the work runs", key)
		}
		noError(t, locks.Do(work.Context(), key, func(context.Context) error { return nil }))
	}
	if n := len(events.of(core.Released)); n != 0 {
		t.Errorf("%d Released events while the work runs", n)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := work.Release(t.Context()); err != nil {
				t.Errorf("Release: %v", err)
			}
		})
	}
	all.Wait()
	wantError(t, context.Cause(work.Context()), context.Canceled)
	for _, event := range events.of(core.Released) {
		if event.Held <= 0 || event.Err != nil || event.Context().Value(traceKey{}) != "trace" {
			t.Errorf("%+v", event)
		}
	}
	if n := len(events.of(core.Released)); n != 3 {
		t.Errorf("%d Released events for 3 locks", n)
	}
	for _, key := range []string{"outer", "a", "b"} {
		if !isFree(t, locks, key) {
			t.Errorf("%q is held after the work", key)
		}
	}
}

// Detach takes all locks or none.
func TestDetachRefuses(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	endless, events := observed(t, rdb, withoutResend()...)
	locks := endless.With(core.WithMaxHold(time.Minute))
	within := func(by *core.Locker, key string, f func(ctx context.Context)) func(context.Context) {
		return func(ctx context.Context) {
			noError(t, by.Do(ctx, key, func(ctx context.Context) error { f(ctx); return nil }))
		}
	}
	attempt := func(f func(ctx context.Context)) func(context.Context) {
		return func(ctx context.Context) {
			a, err := locks.Begin(ctx, "attempt", nil)
			noError(t, err)
			f(a.Lease().Context())
			noError(t, a.Abort(ctx))
		}
	}
	refused := func(kind error, text string) func(context.Context) {
		return func(ctx context.Context) {
			t.Helper()
			work, err := core.Detach(ctx)
			if work != nil || err == nil || kind != nil && !errors.Is(err, kind) || kind == nil && err.Error() != text {
				t.Errorf("got %v, %v", work, err)
			}
			noError(t, work.Release(ctx)) // of a work that should not be
		}
	}
	detached := func(f func(ctx context.Context, work *core.LeaseSet)) func(context.Context) {
		return func(ctx context.Context) {
			work, err := core.Detach(ctx)
			noError(t, err)
			f(ctx, work)
			noError(t, work.Release(ctx))
		}
	}
	const (
		noLimit   = "reqlock: Detach: the lock has no limit for work that hangs: set WithMaxHold"
		isAttempt = "reqlock: Detach: an idempotent request ends with its answer, and cannot be detached: give the work a lock of its own"
		isTwice   = "reqlock: Detach: the locks of this context are detached already"
	)
	for name, run := range map[string]func(context.Context){
		"no lease":                refused(core.ErrNoLease, ""),
		"no limit":                within(endless, "a", refused(nil, noLimit)),
		"no limit outside":        within(endless, "a", within(locks, "b", refused(nil, noLimit))),
		"an attempt outside":      attempt(within(locks, "b", refused(nil, isAttempt))),
		"an attempt inside":       within(endless, "b", attempt(refused(nil, isAttempt))),
		"detached by the handler": within(locks, "a", detached(func(ctx context.Context, _ *core.LeaseSet) { refused(nil, isTwice)(ctx) })),
		"a lock in the work":      within(locks, "a", detached(func(_ context.Context, w *core.LeaseSet) { within(locks, "b", refused(nil, isTwice))(w.Context()) })),
		"the work has ended": within(locks, "a", detached(func(ctx context.Context, w *core.LeaseSet) {
			_ = w.Release(ctx)
			refused(core.ErrLost, "")(w.Context())
		})),
		"the handler has returned": func(ctx context.Context) {
			within(locks, "a", func(inner context.Context) { ctx = inner })(ctx) //nolint:fatcontext // it is used after its end
			refused(core.ErrLost, "")(ctx)
		},
		"the nested lock has returned": within(locks, "a", func(ctx context.Context) {
			within(locks, "a", func(inner context.Context) { ctx = inner })(ctx) //nolint:fatcontext // it is used after its end
			refused(core.ErrLost, "")(ctx)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			run(ctx)
			for _, key := range []string{"a", "b"} {
				if !isFree(t, locks, key) {
					t.Errorf("%q is held", key)
				}
			}
		})
	}
	if n := len(events.of(core.Warned)); n != 3 {
		t.Errorf("%d Warned events of 3 mistakes", n)
	}
}

// A lock that the handler no longer has is not taken, and a new one of the same key waits for the work.
func TestHandlerGoesOnWithoutDetachedLocks(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks := newLocker(t, rdb, withoutResend(core.WithMaxHold(time.Minute))...)
	handler := lock(t, locks, "a")
	work, err := core.Detach(handler.Context())
	noError(t, err)
	if isFree(t, locks, "a") {
		t.Error("the key is free")
	}
	_, err = locks.TryLock(handler.Context(), "a")
	wantError(t, err, core.ErrBusy)
	again := start(func() error {
		return locks.Do(handler.Context(), "a", func(ctx context.Context) error {
			own, err := core.Detach(ctx)
			noError(t, own.Release(ctx))
			return err
		})
	})
	noError(t, work.Release(t.Context()))
	noError(t, <-again)
	noError(t, handler.Context().Err())
	wantError(t, handler.Extend(t.Context(), time.Minute), core.ErrLost)
	release(t, handler)
	wantError(t, context.Cause(handler.Context()), context.Canceled)
}

// The work is told when it loses a lock, holds it too long, or outlasts Close.
func TestDetachedWorkEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(t *testing.T, locks *locktest.Locks, work *core.LeaseSet)
		want error
	}{
		"lost": {func(_ *testing.T, locks *locktest.Locks, _ *core.LeaseSet) {
			locks.Expire("b")
			time.Sleep(10 * time.Second)
		}, core.ErrLost},
		"held too long": {func(*testing.T, *locktest.Locks, *core.LeaseSet) {
			time.Sleep(time.Minute)
		}, core.ErrMaxHold},
		"closed": {func(t *testing.T, locks *locktest.Locks, _ *core.LeaseSet) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := locks.Close(ctx)
			wantError(t, err, context.DeadlineExceeded)
			if text := err.Error(); !strings.Contains(text, "not released: 2; ") || !strings.Contains(text, "for 1s, by ") {
				t.Error(text)
			}
		}, core.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locks := locktest.New(t, core.WithMaxHold(time.Minute), core.WithCaller(true))
				var work *core.LeaseSet
				noError(t, locks.DoAll(t.Context(), []string{"a", "b"}, func(ctx context.Context) (err error) {
					work, err = core.Detach(ctx)
					return err
				}))
				noError(t, work.Context().Err())
				test.end(t, locks, work)
				synctest.Wait()
				wantError(t, context.Cause(work.Context()), test.want)
				wantError(t, work.Release(t.Context()), test.want)
			})
		})
	}
}

// Close waits for work that is detached.
func TestCloseWaitsForDetachedWork(t *testing.T) {
	inBubble(t, func(t *testing.T, locks *core.Locker) {
		handler := lock(t, locks, "a")
		work, err := core.Detach(handler.Context())
		noError(t, err)
		release(t, handler)
		closed := start(func() error { return locks.Close(t.Context()) })
		synctest.Wait()
		if len(closed) > 0 {
			t.Error("Close has not waited")
		}
		noError(t, work.Release(t.Context()))
		noError(t, <-closed)
	}, core.WithMaxHold(time.Hour))
}
