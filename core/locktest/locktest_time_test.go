package locktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

func TestLeaseWithoutRenewalEndsBeforeItsTTL(t *testing.T) {
	bubble(t, func(t *testing.T, elapsed func() time.Duration) {
		locks := locktest.New(t, core.WithTTL(10*time.Second), core.WithRenewal(false))
		lease, err := locks.TryLock(t.Context(), "a")
		noError(t, err)
		<-lease.Context().Done()
		if at := elapsed(); at != 10*time.Second-100*time.Millisecond-2*time.Millisecond {
			t.Errorf("the lease ended after %v", at)
		}
		wantError(t, context.Cause(lease.Context()), core.ErrLost)

		// The key stays until the TTL ends, to the nanosecond.
		time.Sleep(10*time.Second - time.Nanosecond - elapsed())
		wantError(t, errorOf(locks.TryLock(t.Context(), "a")), core.ErrBusy)
		time.Sleep(time.Nanosecond)
		locks.Hold("a")()
	})
}

func TestRenewalKeepsLeaseForAnHour(t *testing.T) {
	bubble(t, func(t *testing.T, _ func() time.Duration) {
		renewals := 0
		locks := locktest.New(t, core.WithTTL(10*time.Second), core.WithObserver(func(e core.Event) {
			if e.Kind == core.Renewed && e.Err == nil {
				renewals++
			}
		}))
		err := locks.Do(t.Context(), "a", func(ctx context.Context) error {
			time.Sleep(time.Hour)
			return context.Cause(ctx)
		})
		noError(t, err)
		if renewals < 1079 || renewals > 1081 { // each 3.33 s
			t.Errorf("%d renewals", renewals)
		}
	})
}

func TestHoldKeepsKeyForAnHour(t *testing.T) {
	bubble(t, func(t *testing.T, _ func() time.Duration) {
		locks := locktest.New(t, core.WithRenewal(false), core.WithMaxHold(time.Minute))
		release := locks.Hold("a")
		time.Sleep(time.Hour)
		wantError(t, errorOf(locks.TryLock(t.Context(), "a")), core.ErrBusy)
		release()
	})
}

func TestWaiterGivesUpAfterItsWait(t *testing.T) {
	bubble(t, func(t *testing.T, elapsed func() time.Duration) {
		locks := locktest.New(t, core.WithWait(2*time.Second))
		defer locks.Hold("account:42")()
		got := enter(t.Context(), locks.Locker, request{"42"}, func(context.Context) { t.Error("ran") })
		if got.Code != "wait_timeout" || got.HTTP != 409 {
			t.Errorf("got %+v", got)
		}
		if at := elapsed(); at != 2*time.Second {
			t.Errorf("gave up after %v", at)
		}
		if n := locks.Waiting("account:42"); n != 0 {
			t.Errorf("%d callers wait at the end", n)
		}
	})
}

func TestKeyOfCrashedHolderIsFreeAfterItsTTL(t *testing.T) {
	bubble(t, func(t *testing.T, elapsed func() time.Duration) {
		locks := locktest.New(t)
		const ttl = 5 * time.Second
		locks.Abandon("a", ttl)
		lease, err := locks.Lock(t.Context(), "a")
		noError(t, err)
		if at := elapsed(); at < ttl || at > ttl+2*time.Millisecond {
			t.Errorf("the waiter got the lock after %v", at)
		}
		_ = lease.Release(t.Context())
	})
}

func TestLeaseIsLostWhileRedisIsDown(t *testing.T) {
	bubble(t, func(t *testing.T, elapsed func() time.Duration) {
		locks := locktest.New(t, core.WithTTL(10*time.Second))
		lease, err := locks.TryLock(t.Context(), "a")
		noError(t, err)
		locks.Down()
		<-lease.Context().Done()
		if at := elapsed(); at != 9898*time.Millisecond {
			t.Errorf("the lease ended after %v", at)
		}
		wantError(t, context.Cause(lease.Context()), core.ErrLost)
	})
}

// synctest.Wait returns only when every goroutine of the bubble is blocked. In no state may a
// goroutine of the client or the server keep running.
func TestBubbleIsIdleBetweenCommands(t *testing.T) {
	bubble(t, func(t *testing.T, elapsed func() time.Duration) {
		locks := locktest.New(t)
		synctest.Wait()
		lease, err := locks.TryLock(t.Context(), "a")
		noError(t, err)
		release := locks.Hold("b")
		waiter := make(chan struct{})
		go func() {
			defer close(waiter)
			_ = locks.Do(t.Context(), "b", func(context.Context) error { return nil })
		}()
		synctest.Wait()
		if n := locks.Waiting("b"); n != 1 {
			t.Errorf("%d callers wait, want 1", n)
		}
		locks.Down()
		synctest.Wait()
		locks.Up()
		synctest.Wait()
		if at := elapsed(); at != 0 {
			t.Errorf("all that took %v", at)
		}
		release()
		<-waiter
		noError(t, lease.Release(t.Context()))
	})
}

func TestAwaitWaitingGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T, elapsed func() time.Duration) {
		fatal := fatalOf(func(_ testing.TB, locks *locktest.Locks) { locks.AwaitWaiting("a", 1) })
		if fatal != `locktest: 0 callers wait for "a" after 10s, not 1` {
			t.Errorf("got %q", fatal)
		}
		if at := elapsed(); at != 10*time.Second {
			t.Errorf("gave up after %v", at)
		}
	})
}
