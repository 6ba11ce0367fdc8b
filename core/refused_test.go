package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// An empty value in the key is a foreign client's too.
func anEmptyValueIsAnothers(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	proxy := servers.Proxy(t)
	servers.Client(t).Set(t.Context(), "reqlock:k", "", time.Minute)
	locks := newLocker(t, servers.Client(t, redistest.Through(proxy)))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	begun := time.Now()
	_, err := locks.TryLock(ctx, "k")
	wantError(t, err, core.ErrBusy)
	t.Logf("TryLock: %v after %v, commands %v", err, time.Since(begun), proxy.Commands())
	proxy.ResetCommands()
	_, err = locks.With(core.WithWait(time.Second)).Lock(t.Context(), "k")
	wantError(t, err, core.ErrWaitTimeout)
	if n := proxy.Commands()["EVALSHA"]; n > 20 {
		t.Errorf("a waiter of 1 s sent %d EVALSHA", n)
	}
}

// The server said that the key is another's, but is slow to subscribe.
func TestARefusalIsKnownBeforeTheSubscription(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	lease := lock(t, newLocker(t, server.Client(t)), "k")
	// The wait is shorter than the bound, which is how long the next question is put
	// off, and longer than a busy machine takes on a connection that is there.
	locks := newLocker(t, proxy.Client(t), core.WithFailOpen(true), core.WithWait(time.Second), core.WithCommandTimeout(2500*time.Millisecond))
	_, err := locks.TryLock(t.Context(), "k")
	wantError(t, err, core.ErrBusy)
	let, _ := proxy.HoldCommand(redistest.Named("SUBSCRIBE"))
	defer let()
	ran := false
	err = locks.Do(t.Context(), "k", func(context.Context) error { ran = true; return nil })
	if ran {
		t.Errorf("ran beside the holder")
	}
	wantError(t, err, core.ErrWaitTimeout)
	release(t, lease)
}

func TestATryBesideAWaiterThatSubscribesIsAnsweredAtOnce(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	lease := lock(t, newLocker(t, server.Client(t)), "k")
	locks := newLocker(t, proxy.Client(t), core.WithCommandTimeout(2500*time.Millisecond))
	let, seen := proxy.HoldCommand(redistest.Named("SUBSCRIBE"))
	defer let()
	go func() { _, _ = locks.Lock(t.Context(), "k") }()
	<-seen
	begun := time.Now()
	_, err := locks.With(core.WithTTL(4*time.Second)).TryLock(t.Context(), "k")
	wantError(t, err, core.ErrBusy)
	t.Logf("%v after %v", err, time.Since(begun))
	release(t, lease)
}
