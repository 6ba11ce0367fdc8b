package locktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

// A request represents the request of a framework.
type request struct{ account string }

var byAccount = core.Named("account", core.Of(func(r request) string { return r.account }))

// enter runs a request as an adapter does and returns its outcome.
func enter(ctx context.Context, l *core.Locker, r request, run func(ctx context.Context)) core.Outcome {
	ctx, release, err := core.Enter(ctx, l, r, byAccount)
	if err != nil {
		outcome, _ := core.OutcomeOf(err)
		return outcome
	}
	defer release()
	run(ctx)
	return core.Outcome{Code: "ran"}
}

// both runs a parallel test outside a bubble and inside one. The results must be the same.
func both(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	t.Run("clock", func(t *testing.T) {
		t.Parallel()
		test(t)
	})
	t.Run("bubble", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, test)
	})
}

func TestBusyKeyIsRefused(t *testing.T) {
	both(t, func(t *testing.T) {
		locks := locktest.New(t)
		r := request{"42"}
		release := locktest.HoldFor(locks, byAccount, r)

		got := enter(t.Context(), locks.Locker, r, func(context.Context) { t.Error("ran while another process held the key") })
		if got.Code != "busy" || got.HTTP != 409 || got.RetryAfter != time.Second {
			t.Errorf("got %+v", got)
		}
		if got := enter(t.Context(), locks.Locker, request{"43"}, func(context.Context) {}); got.Code != "ran" {
			t.Errorf("another key: got %+v", got)
		}

		release()
		release()
		if got := enter(t.Context(), locks.Locker, r, func(context.Context) {}); got.Code != "ran" {
			t.Errorf("after the release: got %+v", got)
		}
	})
}

func TestWaiterGetsTheReleasedLock(t *testing.T) {
	both(t, func(t *testing.T) {
		locks := locktest.New(t, core.WithWait(10*time.Second))
		r := request{"42"}
		release := locktest.HoldFor(locks, byAccount, r)

		outcome := make(chan core.Outcome)
		go func() { outcome <- enter(t.Context(), locks.Locker, r, func(context.Context) {}) }()
		locks.AwaitWaiting("account:42", 1)
		select {
		case got := <-outcome:
			t.Fatalf("got %+v before the release", got)
		default:
		}
		release()
		if got := <-outcome; got.Code != "ran" {
			t.Errorf("got %+v", got)
		}
		if n := locks.Waiting("account:42"); n != 0 {
			t.Errorf("%d callers wait at the end", n)
		}
	})
}

func TestEachNewHasItsOwnRedis(t *testing.T) {
	both(t, func(t *testing.T) {
		one, two := locktest.New(t), locktest.New(t)
		defer one.Hold("a")()
		two.Hold("a")()
		one.Down()
		if err := two.Do(t.Context(), "a", func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}
