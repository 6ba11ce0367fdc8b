package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

func TestMinHoldKeepsTheKeyLocked(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	const minHold = 2 * time.Second
	locks, other := newLocker(t, server.Client(t), core.WithMinHold(minHold)), newLocker(t, server.Client(t))
	begun := time.Now()
	ran := false
	if err := locks.Do(t.Context(), "cron", func(context.Context) error { ran = true; return nil }); err != nil || !ran {
		t.Fatalf("ran: %v, %v", ran, err)
	}
	for _, l := range []*core.Locker{locks, other} {
		wantError(t, errorOf(l.TryLock(t.Context(), "cron")), core.ErrBusy)
	}
	left := server.Client(t).PTTL(t.Context(), "reqlock:cron").Val()
	if left <= 0 || left > minHold {
		t.Errorf("the key stays for %v", left)
	}
	lease := lock(t, other, "cron")
	if took := time.Since(begun); took < minHold {
		t.Errorf("another process got the key after %v", took)
	}
	release(t, lease)
}

// A request that gets only some of its keys has done nothing, and frees them at once.
func TestMinHoldOfRefusedRequestKeepsNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	locks, other := newLocker(t, server.Client(t), core.WithMinHold(time.Minute), core.WithWait(0)), newLocker(t, server.Client(t))
	held := lock(t, other, "b")
	err := locks.DoAll(t.Context(), []string{"a", "b"}, func(context.Context) error { return errors.New("it ran") })
	wantError(t, err, core.ErrBusy)
	release(t, lock(t, other, "a"))
	release(t, held)
}
