package inflight

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestWaitReturnsWhenNoWorkIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var work Counter
		if err := work.Wait(t.Context()); err != nil {
			t.Errorf("nothing to wait for: %v", err)
		}
		for range 3 {
			work.Add()
			go func() {
				time.Sleep(time.Second)
				work.Done()
			}()
		}
		begun := time.Now()
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() {
				if err := work.Wait(t.Context()); err != nil || time.Since(begun) != time.Second {
					t.Errorf("%v after %v", err, time.Since(begun))
				}
			})
		}
		group.Wait()
	})
}

func TestWaitIsGivenUpWithItsContext(t *testing.T) {
	var work Counter
	work.Add()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := work.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	work.Done()
	if err := work.Wait(ctx); err != nil {
		t.Errorf("no work is left, and the context does not matter: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("Done without Add went unnoticed")
		}
	}()
	work.Done()
}

// The work ends after Wait has seen that there is some, and before Wait has registered.
func TestWaitDoesNotMissTheEndOfTheWork(t *testing.T) {
	var work Counter
	work.Add()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	work.mu.Lock()
	ended := make(chan error, 1)
	go func() { ended <- work.Wait(ctx) }()
	time.Sleep(50 * time.Millisecond) // Wait has seen the work, and waits for the mutex
	work.n.Add(-1)                    // as Done does
	work.notify()
	work.mu.Unlock()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
