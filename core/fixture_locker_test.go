package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// newLocker returns a Locker that is closed at the end of the test. Its command timeout
// is longer than the default, because commands are slow while other tests load the
// machine.
func newLocker(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Locker {
	t.Helper()
	opts = append([]core.Option{core.WithCommandTimeout(2 * time.Second)}, opts...)
	locks, err := core.New(rdb, opts...)
	noError(t, err)
	t.Cleanup(func() {
		// Close does not wait for leases that the test still holds.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		_ = locks.Close(ctx)
		ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		noError(t, locks.Close(ctx)) // waits for commands that are under way
	})
	return locks
}

// observed returns such a Locker, and the events that its observer receives.
func observed(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) (*core.Locker, *recorder) {
	t.Helper()
	events := &recorder{}
	return newLocker(t, rdb, append(opts, core.WithObserver(events.record))...), events
}

// withoutResend adds options with which no command is sent twice while the machine is busy. The
// first send may arrive late, and then shows for a moment what the second one has ended.
func withoutResend(opts ...core.Option) []core.Option {
	return append(opts, core.WithTTL(time.Minute), core.WithCommandTimeout(15*time.Second))
}

// lock takes a lock. It fails the test if that returns an error.
func lock(t *testing.T, locks *core.Locker, key string) *core.Lease {
	t.Helper()
	lease, err := locks.Lock(t.Context(), key)
	if err != nil {
		t.Fatalf("lock %q: %v", key, err)
	}
	return lease
}

// startLock takes a lock on another goroutine. The function that it returns waits for the lease, and
// fails the test if Lock returns an error: call it on the goroutine of the test.
func startLock(t *testing.T, locks *core.Locker, key string) (await func() *core.Lease) {
	t.Helper()
	leases, errs := make(chan *core.Lease, 1), make(chan error, 1)
	go func() {
		lease, err := locks.Lock(t.Context(), key)
		errs <- err
		leases <- lease
	}()
	return func() *core.Lease {
		t.Helper()
		if err := suite.Receive(t, "Lock returns", errs); err != nil {
			t.Fatalf("lock %q: %v", key, err)
		}
		return <-leases
	}
}

// release releases a lease. It fails the test if the lease was lost.
func release(t *testing.T, lease *core.Lease) {
	t.Helper()
	noError(t, lease.Release(t.Context()))
}

// wantError fails the test unless err is each of the kinds.
func wantError(t *testing.T, err error, kinds ...error) {
	t.Helper()
	for _, kind := range kinds {
		if !errors.Is(err, kind) {
			t.Errorf("got error %v, want %v", err, kind)
		}
	}
}

// noError fails the test, and ends it, if there is an error. Call it on the goroutine of the test.
func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// errorOf returns the error of a call that also returns something else.
func errorOf[T any](_ T, err error) error { return err }
