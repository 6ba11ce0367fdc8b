package core_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redistest"
)

type panicHook struct{ armed *atomic.Bool }

func (panicHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h panicHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "set" && h.armed.CompareAndSwap(true, false) {
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
	// The lane has to be swift.
	for range 3 {
		release(t, lock(t, locks, "k"))
	}
	armed.Store(true)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic: the test shows nothing")
			}
		}()
		_, _ = locks.Lock(t.Context(), "k")
	}()
	_, err := newLocker(t, server.Client(t), core.WithWait(5*time.Second)).Lock(t.Context(), "k")
	if err != nil {
		t.Errorf("another process after 5 TTLs: %v", err)
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
		case <-time.After(2 * time.Second):
			panic("TryLock does not return: deadlock")
		}
	}
	release(t, outer)
}
