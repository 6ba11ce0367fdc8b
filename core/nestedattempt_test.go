package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

func TestNestedAttemptEndsWithItsOuterAttempt(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	endings := map[string]func(context.Context, *core.Attempt) error{
		"commit":    func(ctx context.Context, a *core.Attempt) error { return a.Commit(ctx, []byte("inner")) },
		"seal":      func(ctx context.Context, a *core.Attempt) error { return a.Seal(ctx) },
		"abort":     func(ctx context.Context, a *core.Attempt) error { return a.Abort(ctx) },
		"interrupt": func(ctx context.Context, a *core.Attempt) error { return a.Interrupt(ctx) },
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
