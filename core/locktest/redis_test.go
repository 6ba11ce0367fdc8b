package locktest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

func TestLocksAreUnavailableWhileRedisIsDown(t *testing.T) {
	both(t, func(t *testing.T) {
		locks := locktest.New(t)
		lease, err := locks.TryLock(t.Context(), "mine")
		if err != nil {
			t.Fatal(err)
		}
		locks.Down()
		locks.Down()
		for range 3 {
			_, err = locks.TryLock(t.Context(), "a")
			if !errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrBusy) {
				t.Fatalf("got %v", err)
			}
		}
		if err := lease.Release(t.Context()); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("the release got %v", err)
		}
		defer locks.Hold("a")() // another process still reaches Redis

		locks.Up()
		locks.Up()
		if _, err := locks.TryLock(t.Context(), "a"); !errors.Is(err, core.ErrBusy) {
			t.Errorf("after Up, a held key got %v", err)
		}
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
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}
