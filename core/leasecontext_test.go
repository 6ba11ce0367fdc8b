package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// underLock returns the context of the function that do runs.
func underLock(do func(fn func(context.Context) error) error) (context.Context, error) {
	seen := make(chan context.Context, 1)
	err := do(func(ctx context.Context) error { seen <- ctx; return nil })
	if err != nil {
		return nil, err
	}
	return <-seen, nil
}

// A context whose leases were released still has them, for their keys and numbers. They do not look
// held.
func TestReleasedLeaseDoesNotLookHeld(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, redistest.Reuse(t).Client(t))
	outer := lock(t, locks, "outer")
	type function = func(context.Context) error
	for name, run := range map[string]func() (context.Context, error){
		"Do": func() (context.Context, error) {
			return underLock(func(fn function) error { return locks.Do(t.Context(), "a", fn) })
		},
		"DoAll": func() (context.Context, error) {
			return underLock(func(fn function) error { return locks.DoAll(t.Context(), []string{"c", "b"}, fn) })
		},
		"Enter": func() (context.Context, error) {
			ctx, release, err := core.Enter(t.Context(), locks, form{"d": "d"}, field("d"))
			release()
			return ctx, err
		},
		"Do, nested in a lease that is held": func() (context.Context, error) {
			return underLock(func(fn function) error { return locks.Do(outer.Context(), "outer", fn) })
		},
		"a nested lease that is not released": func() (context.Context, error) {
			return underLock(func(fn function) error {
				return locks.Do(t.Context(), "e", func(under context.Context) error {
					inner, err := locks.Lock(under, "e")
					return errors.Join(err, fn(inner.Context()))
				})
			})
		},
		"Begin": func() (context.Context, error) {
			a := begin(t, locks, "f")
			return a.Lease().Context(), a.Commit(t.Context(), nil)
		},
	} {
		ctx, err := run()
		noError(t, err)
		first, found := core.LeaseFromContext(ctx)
		if ctx.Err() == nil || !found || first.Key() == "" {
			t.Errorf("%s: the context has ended: %v; it has the lease of %q", name, ctx.Err(), first.Key())
		}
		for _, lease := range core.LeasesFromContext(context.WithoutCancel(ctx)) {
			if lease.Context().Err() == nil || lease.ValidUntil().After(time.Now()) {
				t.Errorf("%s: the lease of %q looks held, until %v", name, lease.Key(), lease.ValidUntil())
			}
			wantError(t, lease.Extend(t.Context(), time.Minute), core.ErrLost)
			wantError(t, errorOf(locks.Lock(ctx, lease.Key())), core.ErrWaitTimeout)
		}
	}
	release(t, outer)
}
