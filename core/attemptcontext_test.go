package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

// The end of the caller's context does not end that of an attempt, unless WithClientCancel says
// so. Its values stay.
func TestAttemptOutlivesItsCallersContext(t *testing.T) {
	t.Parallel()
	type name struct{}
	locks := locktest.New(t).Locker
	for _, cancels := range []bool{false, true} {
		for how, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
			"canceled": context.WithCancel,
			"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithTimeout(ctx, time.Hour)
				return ctx, cancel
			},
		} {
			ctx, cancel := end(context.WithValue(t.Context(), name{}, "trace"))
			attempt, err := locks.With(core.WithClientCancel(cancels)).Begin(ctx, "key", nil)
			noError(t, err)
			cancel()
			inside := attempt.Lease().Context()
			_, hasDeadline := inside.Deadline()
			if (inside.Err() != nil) != cancels || hasDeadline != (cancels && how == "deadline") || inside.Value(name{}) != "trace" {
				t.Errorf("%s, WithClientCancel(%v): %v, a deadline: %v, the value %v", how, cancels, inside.Err(), hasDeadline, inside.Value(name{}))
			}
			if err := attempt.Abort(t.Context()); err != nil || inside.Err() == nil {
				t.Errorf("Abort: %v; the context: %v", err, inside.Err())
			}
		}
	}
}

// An attempt under other locks ends with them: their loss ends its context, although the end
// of the context from which both are derived does not.
func TestAttemptEndsWithTheLocksOutside(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]string{
		"the outermost": "one",
		"the innermost": "two",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locks := locktest.New(t)
				ctx, cancel := context.WithCancel(t.Context())
				err := locks.DoAll(ctx, []string{"one", "two"}, func(ctx context.Context) error {
					attempt, err := locks.Begin(ctx, "key", nil)
					if err != nil {
						return err
					}
					cancel()
					inside := attempt.Lease().Context()
					if inside.Err() != nil {
						t.Errorf("the caller's context has ended, and so has the attempt's: %v", context.Cause(inside))
					}
					locks.Expire(lost)
					<-inside.Done()
					wantError(t, context.Cause(inside), core.ErrLost)
					return attempt.Abort(t.Context())
				})
				if !errors.Is(err, core.ErrLost) {
					t.Errorf("DoAll: %v", err)
				}
			})
		})
	}
}

// An attempt counts as one without a client from the end of its caller's context to its own end.
func TestAttemptsWithoutClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := locktest.New(t)
		want := func(n int, when string) {
			t.Helper()
			if got := locks.AttemptsWithoutClient(); got != n {
				t.Errorf("%s: %d, want %d", when, got, n)
			}
		}
		type caller struct {
			cancel  context.CancelFunc
			attempt *core.Attempt
		}
		begin := func(l *core.Locker, from context.Context, key string) caller {
			t.Helper()
			ctx, cancel := context.WithCancel(from)
			attempt, err := l.Begin(ctx, key, nil)
			noError(t, err)
			return caller{cancel, attempt}
		}
		outer, err := locks.Lock(t.Context(), "outer")
		noError(t, err)
		one := begin(locks.Locker, t.Context(), "one")
		inside := begin(locks.Locker, one.attempt.Lease().Context(), "inside")
		cancelled := begin(locks.With(core.WithClientCancel(true)), t.Context(), "two")
		under := begin(locks.Locker, outer.Context(), "three")
		plain, cancel := context.WithCancel(t.Context())
		noError(t, errorOf(locks.Lock(plain, "plain")))
		cancel()
		want(0, "all clients wait, but for that of a plain lock")
		one.cancel()
		want(1, "one has left")
		cancelled.cancel()
		want(2, "a client that cancels its handler has left, too")
		locks.Expire("outer")
		<-under.attempt.Lease().Context().Done()
		want(2, "a lock outside is lost")
		for _, c := range []caller{inside, one, cancelled, under} {
			noError(t, c.attempt.Abort(t.Context()))
			c.cancel()
		}
		want(0, "all have ended")
	})
}

// A caller that has detached its context from a lock, as for work that outlives the lock, begins
// an attempt that outlives it as well.
func TestDetachedAttemptOutlivesTheLockOutside(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	lease, err := locks.Lock(t.Context(), "outside")
	noError(t, err)
	attempt, err := locks.Begin(context.WithoutCancel(lease.Context()), "key", nil)
	noError(t, err)
	noError(t, lease.Release(t.Context()))
	noError(t, attempt.Lease().Context().Err())
	noError(t, attempt.Abort(t.Context()))
}
