package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The cause of the context is the loss of the lease, also if the context is made after the
// loss and after the end of its parent.
func TestContextMadeAfterTheLossHasItsCause(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	locks := newLocker(t, server.Client(t), core.WithTTL(200*time.Millisecond), core.WithRenewal(false))
	for _, early := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		lease, err := locks.Lock(ctx, "k")
		noError(t, err)
		if early {
			lease.Context()
		}
		suite.Eventually(t, "the lease is lost", func() bool { return errors.Is(lease.Extend(context.Background(), time.Millisecond), core.ErrLost) })
		if early {
			suite.AwaitClosed(t, "the end of the context", lease.Context().Done()) // Extend may return a moment before
		}
		cancel()
		if cause := context.Cause(lease.Context()); !errors.Is(cause, core.ErrLost) {
			t.Errorf("early %v: the cause is %v", early, cause)
		}
		_ = lease.Release(context.Background())
	}
}

// boundedBy is a context with the validity of a lease as its deadline.
type boundedBy struct {
	context.Context
	lease *core.Lease
}

func (b boundedBy) Deadline() (time.Time, bool) { return b.lease.ValidUntil(), true }

func TestLockUnderContextThatReadsALease(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, redistest.Reuse(t).Client(t))
	outer := lock(t, locks, "outer")
	for i := range 1000 { // about one of 64 keys is in the same shard of the engine as the outer key
		done := make(chan struct{})
		go func() {
			defer close(done)
			lease, err := locks.TryLock(boundedBy{t.Context(), outer}, string(rune('a'+i)))
			if err != nil {
				t.Error(err)
			}
			_ = lease.Release(t.Context())
		}()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			panic("TryLock does not return: deadlock")
		}
	}
	release(t, outer)
}
