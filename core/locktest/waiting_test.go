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
		if err := <-refusals; !errors.Is(err, core.ErrWaitTimeout) {
			t.Errorf("the shorter wait ended with %v", err)
		}
		if n := locks.Waiting("a"); n != 1 {
			t.Errorf("%d callers wait, want 1", n)
		}
		cancel()
		if err := <-refusals; !errors.Is(err, context.Canceled) {
			t.Errorf("the cancelled wait ended with %v", err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		replayed := make(chan bool)
		go func() {
			second, err := locks.Begin(t.Context(), "a", nil)
			replayed <- err == nil && second.Lease() == nil
		}()
		locks.AwaitWaiting("i:a", 1)
		if err := attempt.Commit(t.Context(), []byte("done")); err != nil {
			t.Error(err)
		}
		if !<-replayed {
			t.Error("the copy was not replayed")
		}
		if n := locks.Waiting("i:a"); n != 0 {
			t.Errorf("%d callers wait, want 0", n)
		}
	})
}
