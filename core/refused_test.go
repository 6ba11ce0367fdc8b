package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A key with an empty value is locked by a foreign client.
func testEmptyValueBelongsToAnother(t *testing.T, servers *deployment) {
	t.Helper()
	proxy := servers.Proxy(t)
	servers.Client(t).Set(t.Context(), servers.name("k"), "", time.Minute)
	locks := servers.newLocker(t, servers.Client(t, redistest.Through(proxy)))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	begun := time.Now()
	_, err := locks.TryLock(ctx, "k")
	wantError(t, err, core.ErrBusy)
	t.Logf("TryLock: %v after %v, commands %v", err, time.Since(begun), proxy.Commands())
	proxy.ResetCommands()
	wantError(t, errorOf(locks.With(core.WithWait(500*time.Millisecond)).Lock(t.Context(), "k")), core.ErrWaitTimeout)
	if n := proxy.Commands()["EVALSHA"]; n > 10 {
		t.Errorf("a waiter of 500 ms sent %d EVALSHA", n)
	}
}

// The first command has found another holder, and SUBSCRIBE does not return. The wait ends
// with ErrWaitTimeout, so WithFailOpen does not run the function.
func TestWaiterIsNotUnlockedBeforeItsSubscription(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	proxy := redistest.NewProxy(t, server.Addr())
	lease := lock(t, newLocker(t, server.Client(t)), "k")
	// The wait is shorter than the command timeout, after which the waiter sends its next
	// command. It is long enough for one command on a busy machine.
	locks := newLocker(t, proxy.Client(t), core.WithFailOpen(true), core.WithWait(time.Second), core.WithCommandTimeout(2500*time.Millisecond))
	_, err := locks.TryLock(t.Context(), "k")
	wantError(t, err, core.ErrBusy)
	deliver, _ := proxy.HoldCommand(redistest.Named("SUBSCRIBE"))
	defer deliver()
	ran := false
	err = locks.Do(t.Context(), "k", func(context.Context) error { ran = true; return nil })
	if ran {
		t.Errorf("the function ran while the lock was held")
	}
	wantError(t, err, core.ErrWaitTimeout)
	release(t, lease)
}

func TestTryLockDuringSubscriptionOfAWaiter(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	proxy := redistest.NewProxy(t, server.Addr())
	lease := lock(t, newLocker(t, server.Client(t)), "k")
	locks := newLocker(t, proxy.Client(t), core.WithCommandTimeout(2500*time.Millisecond))
	deliver, seen := proxy.HoldCommand(redistest.Named("SUBSCRIBE"))
	defer deliver()
	go func() { _, _ = locks.Lock(t.Context(), "k") }()
	suite.AwaitClosed(t, "the SUBSCRIBE is held", seen)
	begun := time.Now()
	_, err := locks.With(core.WithTTL(4*time.Second)).TryLock(t.Context(), "k")
	wantError(t, err, core.ErrBusy)
	t.Logf("%v after %v", err, time.Since(begun))
	release(t, lease)
}
