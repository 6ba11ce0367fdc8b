package core_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// heldChecks is a Locker whose Checks wait until the first command of a run is released.
type heldChecks struct {
	locks   *core.Locker
	release chan struct{} // closed to let all runs go on
	sets    atomic.Int64  // SET is the first command of a run
}

// holdChecks returns heldChecks. Call it in a bubble.
func holdChecks(t *testing.T) *heldChecks {
	t.Helper()
	h := &heldChecks{release: make(chan struct{})}
	h.locks = newLocker(t, storetest.Embedded(t, func(_ *server.Peer, command string, _ ...string) (answered bool) {
		if command == "SET" {
			h.sets.Add(1)
			<-h.release
		}
		return false
	}), patient)
	return h
}

// start calls Check on a view, and returns its result.
func (h *heldChecks) start(ctx context.Context) <-chan error {
	checked := make(chan error, 1)
	go func() { checked <- h.locks.With(core.WithTTL(time.Minute)).Check(ctx) }()
	synctest.Wait()
	return checked
}

func TestChecksAtOnceShareOneRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := holdChecks(t)
		first, cancel := context.WithCancel(t.Context())
		leaves := h.start(first)
		var stay []<-chan error
		for range 100 {
			stay = append(stay, h.start(t.Context()))
		}
		if n := h.sets.Load(); n != 1 {
			t.Errorf("%d runs began", n)
		}
		cancel()
		synctest.Wait()
		select {
		case err := <-leaves:
			wantError(t, err, core.ErrUnavailable, context.Canceled)
		default:
			t.Error("the caller stays after its context has ended")
		}
		close(h.release)
		for _, checked := range stay {
			noError(t, <-checked)
		}
		one := h.sets.Load()
		if err := h.locks.Check(t.Context()); err != nil || h.sets.Load() != 2*one {
			t.Errorf("the next check: %v, with %d SETs after %d", err, h.sets.Load(), one)
		}
	})
}

func TestCheckRunEndsWithItsLastCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := holdChecks(t)
		ctx, cancel := context.WithCancel(t.Context())
		left := []<-chan error{h.start(ctx), h.start(ctx)}
		cancel()
		for _, checked := range left {
			wantError(t, <-checked, core.ErrUnavailable, context.Canceled)
		}
		next := h.start(t.Context())
		if n := h.sets.Load(); n != 2 {
			t.Errorf("%d runs began, want another one", n)
		}
		close(h.release)
		noError(t, <-next)
	})
}

func TestCloseEndsTheCheckRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := holdChecks(t)
		checked := h.start(t.Context())
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := h.locks.Close(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("close: %v", err)
		}
		wantError(t, <-checked, core.ErrClosed)
		wantError(t, h.locks.Check(t.Context()), core.ErrClosed)
		close(h.release)
	})
}
