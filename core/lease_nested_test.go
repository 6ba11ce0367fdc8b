package core_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// outerEnds are all ways to end an outer lease of the key k, with the errors of the nested lease.
var outerEnds = map[string]struct {
	end  func(t *testing.T, locks *core.Locker, rdb *redis.Client, outer *core.Lease) // returns once it has ended, or will
	want []error
}{
	"released": {func(t *testing.T, _ *core.Locker, _ *redis.Client, outer *core.Lease) {
		release(t, outer)
	}, []error{core.ErrLost}},
	"lost": {func(t *testing.T, _ *core.Locker, rdb *redis.Client, outer *core.Lease) {
		redistest.Lose(t, rdb, "the outer lease is lost", func() bool { return outer.Context().Err() != nil }, "reqlock:k")
	}, []error{core.ErrLost}},
	"held too long": {
		func(*testing.T, *core.Locker, *redis.Client, *core.Lease) {}, // WithMaxHold ends it
		[]error{core.ErrMaxHold, core.ErrLost},
	},
	"closed": {func(t *testing.T, locks *core.Locker, _ *redis.Client, _ *core.Lease) {
		wantError(t, locks.Close(endedContext()), context.Canceled)
	}, []error{core.ErrClosed}},
}

// nestings are the contexts under which a holder locks its key again.
var nestings = map[string]func(context.Context) context.Context{
	"the context of the lease": func(ctx context.Context) context.Context { return ctx },
	"WithoutCancel":            context.WithoutCancel,
}

func TestNestedLeaseEndsWithItsOuterLease(t *testing.T) {
	t.Parallel()
	for end, row := range outerEnds {
		for nesting, nest := range nestings {
			t.Run(end+", "+nesting, func(t *testing.T) {
				t.Parallel()
				rdb := newEmbedded(t)
				locks := newLocker(t, rdb, core.WithTTL(4*time.Second))
				view := locks
				if end == "held too long" { // a busy machine may take a second to lock the nested leases
					view = locks.With(core.WithMaxHold(time.Second))
				}
				outer, own := lock(t, view, "k"), errors.New("own")
				// Do reports the end of the outer lease beside its own error.
				err := locks.DoAll(nest(outer.Context()), []string{"k", "another"}, func(ctx context.Context) error {
					inner, err := locks.Lock(nest(ctx), "k")
					noError(t, err)
					deep, err := locks.Lock(nest(inner.Context()), "k")
					noError(t, err)
					row.end(t, locks, rdb, outer)
					suite.Eventually(t, "the context of fn ends", func() bool { return ctx.Err() != nil })
					wantError(t, context.Cause(ctx), row.want...)
					for name, lease := range map[string]*core.Lease{"inner": inner, "inner of inner": deep} {
						suite.Eventually(t, "the context of the "+name+" ends", func() bool { return lease.Context().Err() != nil })
						wantError(t, context.Cause(lease.Context()), row.want...)
						wantError(t, lease.Extend(t.Context(), time.Second), row.want...)
						for range 2 {
							wantError(t, lease.Release(t.Context()), row.want...)
						}
					}
					return own
				})
				wantError(t, err, append(row.want, own)...)
			})
		}
	}
}

func TestReleasedNestedLeaseIsNotLost(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	outer := lock(t, locks, "k")
	inner, err := locks.Lock(outer.Context(), "k")
	noError(t, err)
	release(t, inner)
	if cause := context.Cause(inner.Context()); !errors.Is(cause, context.Canceled) || errors.Is(cause, core.ErrLost) {
		t.Errorf("the cause of its context is %v", cause)
	}
	wantError(t, inner.Extend(t.Context(), time.Second), core.ErrLost) // as on every released lease
	noError(t, outer.Context().Err())
	if err := locks.Do(outer.Context(), "k", func(context.Context) error { return nil }); err != nil {
		t.Errorf("nested Do: %v", err)
	}
	release(t, outer)
	release(t, inner)
}

// The end of the caller's own context is not the end of the outer lease.
func TestNestedLeaseOutlivesTheContextOfItsCaller(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	outer := lock(t, locks, "k")
	ctx, cancel := context.WithCancel(outer.Context())
	inner, err := locks.Lock(ctx, "k")
	noError(t, err)
	cancel()
	wantError(t, context.Cause(inner.Context()), context.Canceled)
	release(t, inner)
	release(t, outer)
}

// Either the nested lease shares the lock of the outer lease, and ends with it, or it is
// a lock of its own.
func TestNestingWhileTheOuterLeaseIsReleased(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	for range suite.Size(50, 200) {
		outer := lock(t, locks, "k")
		ctx := context.WithoutCancel(outer.Context())
		var inner *core.Lease
		var err error
		var group sync.WaitGroup
		group.Go(func() { release(t, outer) })
		group.Go(func() { inner, err = locks.Lock(ctx, "k") })
		group.Wait()
		switch {
		case err != nil:
			t.Fatal(err)
		case inner.Token() != outer.Token():
			release(t, inner)
		default:
			wantError(t, context.Cause(inner.Context()), core.ErrLost)
			wantError(t, inner.Release(t.Context()), core.ErrLost)
		}
	}
}

// The locks of several keys are released together. A nested lease of any of them is
// lost, and its context says so.
func TestNestedLeaseIsLostWhenSeveralKeysAreReleased(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	for name, under := range nestings {
		for _, key := range []string{"a", "b", "c"} {
			t.Run(name+", "+key, func(t *testing.T) {
				var inner *core.Lease
				err := locks.DoAll(t.Context(), []string{"b", "c", "a"}, func(ctx context.Context) (err error) {
					inner, err = locks.Lock(under(ctx), key)
					return err
				})
				noError(t, err)
				wantError(t, context.Cause(inner.Context()), core.ErrLost)
				wantError(t, inner.Release(t.Context()), core.ErrLost)
			})
		}
	}
}

// The context of a nested lease ends with the nested lease. A lock of the key under that
// context is refused, as it is for any other key.
func TestContextOfReleasedNestedLeaseTakesNoLock(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	outer := lock(t, locks, "k")
	inner, err := locks.Lock(outer.Context(), "k")
	noError(t, err)
	ctx := inner.Context()
	release(t, inner)
	ran := false
	err = locks.Do(ctx, "k", func(context.Context) error {
		ran = true
		return nil
	})
	wantError(t, err, context.Canceled)
	if ran {
		t.Error("fn ran under a context that had ended")
	}
	release(t, outer)
}

func TestNestedAttemptEndsWithItsOuterAttempt(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	endings := map[string]func(context.Context, *core.Attempt) error{
		"commit":  func(ctx context.Context, a *core.Attempt) error { return a.Commit(ctx, []byte("inner")) },
		"done":    func(ctx context.Context, a *core.Attempt) error { return a.Done(ctx) },
		"abort":   func(ctx context.Context, a *core.Attempt) error { return a.Abort(ctx) },
		"unknown": func(ctx context.Context, a *core.Attempt) error { return a.Unknown(ctx, nil) },
	}
	for ending, end := range endings {
		t.Run(ending, func(t *testing.T) {
			t.Parallel()
			locks := newLocker(t, server.Client(t))
			outer := begin(t, locks, ending)
			nested := func() *core.Attempt {
				a, err := locks.Begin(context.WithoutCancel(outer.Lease().Context()), ending, nil)
				noError(t, err)
				return a
			}
			before, after := nested(), nested()
			noError(t, end(t.Context(), before))
			if err := before.Lease().Context().Err(); err == nil {
				t.Error("the context has not ended with the attempt")
			}
			noError(t, outer.Commit(t.Context(), []byte("outer")))
			wantError(t, context.Cause(after.Lease().Context()), core.ErrLost)
			wantError(t, after.Lease().Extend(t.Context(), time.Second), core.ErrLost)
			for range 2 {
				wantError(t, end(t.Context(), after), core.ErrLost)
			}
			noError(t, end(t.Context(), before))
			wantReplay(t, locks, ending, "outer")
		})
	}
}

func TestNestedAttemptOfALostLeaseIsLost(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	locks := newLocker(t, rdb, core.WithTTL(4*time.Second))
	outer := begin(t, locks, "k")
	inner, err := locks.Begin(context.WithoutCancel(outer.Lease().Context()), "k", nil)
	noError(t, err)
	redistest.Lose(t, rdb, "the context of the nested attempt ends",
		func() bool { return inner.Lease().Context().Err() != nil }, "reqlock:i:k")
	wantError(t, context.Cause(inner.Lease().Context()), core.ErrLost)
	wantError(t, inner.Commit(t.Context(), nil), core.ErrLost)
	noError(t, outer.Commit(t.Context(), []byte("late")))
}
