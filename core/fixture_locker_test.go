package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// newLocker returns a Locker that is closed at the end of the test. Its command timeout
// is longer than the default, because commands are slow while other tests load the
// machine.
func newLocker(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Locker {
	t.Helper()
	opts = append([]core.Option{core.WithCommandTimeout(10 * time.Second)}, opts...)
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
	var lease *core.Lease
	result := start(func() (err error) {
		lease, err = locks.Lock(t.Context(), key)
		return err
	})
	return func() *core.Lease {
		t.Helper()
		noError(t, suite.Receive(t, "Lock returns", result))
		return lease
	}
}

// release releases a lease, on any goroutine. It fails the test if the lease was lost.
func release(t *testing.T, lease *core.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
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

// newEmbedded returns a client of an embedded Redis.
func newEmbedded(tb testing.TB) *redis.Client {
	tb.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(tb).Addr(), ReadTimeout: 10 * time.Second})
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// inBubble runs a test in a bubble, with a Locker on a Redis in memory.
func inBubble(t *testing.T, test func(t *testing.T, locks *core.Locker), opts ...core.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, locktest.New(t, opts...).Locker) })
}

// begin begins an attempt that is to run. It fails the test if there is no such attempt.
func begin(t *testing.T, locks *core.Locker, key string) *core.Attempt {
	t.Helper()
	a, err := locks.Begin(t.Context(), key, []byte("f"))
	if err != nil {
		t.Fatalf("begin %q: %v", key, err)
	}
	if record, done := a.Replay(); done {
		t.Fatalf("begin %q: done already, with %q", key, record)
	}
	return a
}

// wantReplay fails the test unless the request is done and has this answer.
func wantReplay(t *testing.T, locks *core.Locker, key, answer string) {
	t.Helper()
	a, err := locks.Begin(t.Context(), key, []byte("f"))
	if err != nil {
		t.Fatalf("begin %q: %v", key, err)
	}
	if record, done := a.Replay(); !done || string(record) != answer {
		t.Errorf("begin %q: done %v with %q, want %q", key, done, record, answer)
	}
}

// endedContext returns a context that has ended.
func endedContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// start calls a function on another goroutine, and sends its error to the channel.
func start(call func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- call() }()
	return result
}

// panicOf returns the text with which a function panics, or "".
func panicOf(call func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	call()
	return ""
}
