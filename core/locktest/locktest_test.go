package locktest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

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

		refusal := make(chan core.Refusal)
		go func() { refusal <- enter(t.Context(), locks.Locker, r, func(context.Context) {}) }()
		locks.AwaitWaiting("account:42", 1)
		select {
		case got := <-refusal:
			t.Fatalf("got %+v before the release", got)
		default:
		}
		release()
		if got := <-refusal; got.Code != "ran" {
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

func TestLocksAreUnavailableWhileRedisIsDown(t *testing.T) {
	both(t, func(t *testing.T) {
		locks := locktest.New(t)
		lease, err := locks.TryLock(t.Context(), "mine")
		noError(t, err)
		locks.Down()
		locks.Down()
		for range 3 {
			_, err = locks.TryLock(t.Context(), "a")
			if !errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrBusy) {
				t.Fatalf("got %v", err)
			}
		}
		wantError(t, lease.Release(t.Context()), core.ErrUnavailable)
		defer locks.Hold("a")() // another process still reaches Redis

		locks.Up()
		locks.Up()
		wantError(t, errorOf(locks.TryLock(t.Context(), "a")), core.ErrBusy)
		if err := locks.Do(t.Context(), "b", func(context.Context) error { return nil }); err != nil {
			t.Errorf("after Up, a free key got %v", err)
		}
	})
}

func TestWaiterSurvivesAnOutage(t *testing.T) {
	both(t, func(t *testing.T) {
		locks := locktest.New(t)
		release := locks.Hold("a")
		result := make(chan error)
		go func() {
			result <- locks.Do(t.Context(), "a", func(context.Context) error { return nil })
		}()
		locks.AwaitWaiting("a", 1)
		locks.Down()
		release()
		locks.Up()
		noError(t, <-result)
	})
}

func TestWaitersAreServedInOrderOfArrival(t *testing.T) {
	both(t, func(t *testing.T) {
		locks := locktest.New(t)
		release := locks.Hold("a")
		const callers = 9
		var order []int // guarded by the lock
		var done sync.WaitGroup
		for i := range callers {
			done.Go(func() {
				err := locks.Do(t.Context(), "a", func(context.Context) error {
					order = append(order, i)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
			locks.AwaitWaiting("a", i+1)
		}
		if n := locks.Waiting("b"); n != 0 {
			t.Errorf("%d callers wait for another key", n)
		}
		release()
		done.Wait()
		for i, caller := range order {
			if i != caller {
				t.Fatalf("got the order %v", order)
			}
		}
		if len(order) != callers || locks.Waiting("a") != 0 {
			t.Errorf("%d callers ran and %d wait", len(order), locks.Waiting("a"))
		}
	})
}

func TestWaitingEndsWithTheWait(t *testing.T) {
	both(t, func(t *testing.T) {
		locks := locktest.New(t)
		defer locks.Hold("a")()
		ctx, cancel := context.WithCancel(t.Context())
		refusals := make(chan error, 2)
		go func() {
			_, err := locks.Lock(ctx, "a")
			refusals <- err
		}()
		locks.AwaitWaiting("a", 1)
		go func() {
			_, err := locks.With(core.WithWait(50*time.Millisecond)).Lock(t.Context(), "a")
			refusals <- err
		}()
		wantError(t, <-refusals, core.ErrWaitTimeout)
		if n := locks.Waiting("a"); n != 1 {
			t.Errorf("%d callers wait, want 1", n)
		}
		cancel()
		wantError(t, <-refusals, context.Canceled)
		if n := locks.Waiting("a"); n != 0 {
			t.Errorf("%d callers wait, want 0", n)
		}
	})
}

// A copy that waits for the answer of an attempt waits until it gets the answer.
func TestWaitingEndsWithAReplay(t *testing.T) {
	both(t, func(t *testing.T) {
		locks := locktest.New(t, core.WithWait(time.Minute))
		attempt, err := locks.Begin(t.Context(), "a", nil)
		noError(t, err)
		replayed := make(chan bool)
		go func() {
			second, err := locks.Begin(t.Context(), "a", nil)
			replayed <- err == nil && second.Lease() == nil
		}()
		locks.AwaitWaiting("i:a", 1)
		noError(t, attempt.Commit(t.Context(), []byte("done")))
		if !<-replayed {
			t.Error("the copy was not replayed")
		}
		if n := locks.Waiting("i:a"); n != 0 {
			t.Errorf("%d callers wait, want 0", n)
		}
	})
}
