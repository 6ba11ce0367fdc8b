package core_test

import (
	"context"
	"sync"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

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
	for name, under := range nestings() {
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
