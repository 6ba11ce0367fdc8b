package core_test

import (
	"bytes"
	"context"
	"errors"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A panicHook panics once it is armed, at the first SET that a test sends on its own
// goroutine. On any other there is nobody to recover.
type panicHook struct{ armed *atomic.Bool }

func (panicHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h panicHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "set" && bytes.Contains(debug.Stack(), []byte("TestAPanicOfAHook")) && h.armed.CompareAndSwap(true, false) {
			panic("a hook's bug")
		}
		return err
	}
}

func (h panicHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A request that panics, as net/http survives it, leaves no lock behind.
func TestAPanicOfAHookLeavesNoLock(t *testing.T) {
	server := redistest.Start(t)
	armed := &atomic.Bool{}
	rdb := server.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	rdb.AddHook(panicHook{armed})
	locks := newLocker(t, rdb, core.WithTTL(time.Second))
	armed.Store(true)
	// The caller leads where the lane is swift, which a busy machine is not always.
	await(t, "the hook has panicked", func() (panicked bool) {
		defer func() { panicked = recover() != nil }()
		if lease, err := locks.Lock(t.Context(), "k"); err == nil {
			_ = lease.Release(t.Context())
		}
		return false
	})
	_, err := newLocker(t, server.Client(t), core.WithWait(20*time.Second)).Lock(t.Context(), "k")
	if err != nil {
		t.Errorf("another process after 20 TTLs: %v", err)
	}
}

// What ended the lease is the cause, whatever happens before it is asked for.
func TestALateContextTellsTheLoss(t *testing.T) {
	server := redistest.Start(t)
	locks := newLocker(t, server.Client(t), core.WithTTL(200*time.Millisecond), core.WithRenewal(false))
	for _, early := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		lease, err := locks.Lock(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		if early {
			lease.Context()
		}
		await(t, "lost", func() bool { return errors.Is(lease.Extend(context.Background(), time.Millisecond), core.ErrLost) })
		cancel()
		if cause := context.Cause(lease.Context()); !errors.Is(cause, core.ErrLost) {
			t.Errorf("early %v: the cause is %v", early, cause)
		}
		_ = lease.Release(context.Background())
	}
}

// boundedBy is a context that ends with a lease: no work under it may outlive that.
type boundedBy struct {
	context.Context
	lease *core.Lease
}

func (b boundedBy) Deadline() (time.Time, bool) { return b.lease.ValidUntil(), true }

func TestAContextThatAsksALease(t *testing.T) {
	locks := newLocker(t, redistest.Start(t).Client(t))
	outer := lock(t, locks, "outer")
	for i := range 1000 { // one of 64 lies beside the outer one
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
