package core_test

import (
	"bytes"
	"context"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A panicHook panics once, at the first SET that a test sends on its own goroutine. A panic
// on another goroutine would end the process.
type panicHook struct{ armed *atomic.Bool }

func (panicHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h panicHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "set" && bytes.Contains(debug.Stack(), []byte("TestPanicOfAHook")) && h.armed.CompareAndSwap(true, false) {
			panic("a bug of a hook")
		}
		return err
	}
}

func (h panicHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The hook panics on the goroutine of the request, and net/http would recover. The lock
// must not stay.
func TestPanicOfAHookLeavesNoLock(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	armed := &atomic.Bool{}
	rdb := server.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	rdb.AddHook(panicHook{armed})
	locks := newLocker(t, rdb, core.WithTTL(time.Second))
	armed.Store(true)
	// A caller sends its command on its own goroutine only if the lane is fast. On a busy
	// machine that takes several tries.
	suite.Eventually(t, "the hook has panicked", func() (panicked bool) {
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
