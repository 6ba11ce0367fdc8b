package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A context whose leases were released still has them, for their keys and numbers. They do not look
// held.
func TestReleasedLeaseDoesNotLookHeld(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, redistest.Reuse(t).Client(t))
	outer := lock(t, locks, "outer")
	for name, run := range map[string]func() (context.Context, error){
		"Do": func() (ctx context.Context, err error) {
			return ctx, locks.Do(t.Context(), "a", func(under context.Context) error { ctx = under; return nil })
		},
		"DoAll": func() (ctx context.Context, err error) {
			return ctx, locks.DoAll(t.Context(), []string{"c", "b"}, func(under context.Context) error { ctx = under; return nil })
		},
		"Enter": func() (context.Context, error) {
			ctx, release, err := core.Enter(t.Context(), locks, form{"d": "d"}, field("d"))
			release()
			return ctx, err
		},
		"Do, nested in a lease that is held": func() (ctx context.Context, err error) {
			return ctx, locks.Do(outer.Context(), "outer", func(under context.Context) error { ctx = under; return nil })
		},
		"a nested lease that is released after the outer one": func() (ctx context.Context, err error) {
			return ctx, locks.Do(t.Context(), "e", func(under context.Context) error {
				inner, err := locks.Lock(under, "e")
				ctx = inner.Context()
				return err
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
