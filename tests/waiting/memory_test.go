package waiting

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// liveHeap returns the bytes of heap that are in use for something. The stacks
// of goroutines are not among them.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // what pools and finalizers kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// spared is how much heap may differ, in bytes, for reasons of the runtime and
// of the client.
const spared = 256 << 10

// A crowd is many callers of one Locker. What the callers need for themselves is
// no more than a pointer to it.
type crowd struct {
	locks      *core.Locker
	ctx        context.Context
	leave      context.CancelFunc
	begin, end chan struct{}
	callers    sync.WaitGroup
	through    atomic.Int64
	served     atomic.Int64
	left       atomic.Int64
}

// call is one caller. It waits before and after, so that its goroutine is there
// whenever memory is measured.
func (c *crowd) call() {
	<-c.begin
	lease, err := c.locks.Lock(c.ctx, theKey)
	switch {
	case err == nil && lease.Release(c.ctx) == nil:
		c.served.Add(1)
	case errors.Is(err, context.Canceled):
		c.left.Add(1)
	}
	c.through.Add(1)
	<-c.end
}

//faults:row 32: bytes for each waiter
func TestTenThousandWaiters(t *testing.T) {
	// The runtime keeps room for their timers: some bytes each.
	const waiters, most, least = 10_000, 2 << 10, 50
	for _, test := range []struct {
		name   string
		wait   []core.Option
		served bool // else they leave
	}{
		{"that leave", nil, false},
		{"that are served", nil, true},
		{"with a bounded wait", []core.Option{core.WithWait(time.Hour)}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := redistest.Start(t)
			var waiting atomic.Int64
			locks := newLocker(t, server.Client(t), core.WithMaxWaiters(waiters+1), waitingFor(&waiting)).With(test.wait...)
			other := newLocker(t, server.Client(t))

			// One waiter first, so that connections and subscription are there.
			first := lock(t, other)
			done := make(chan error)
			go func() { done <- locks.Do(t.Context(), theKey, func(context.Context) error { return nil }) }()
			await(t, "one waits", func() bool { return waiting.Load() == 1 })
			release(t, first)
			if err := <-done; err != nil {
				t.Fatal(err)
			}

			outer := lock(t, other)
			c := &crowd{locks: locks, begin: make(chan struct{}), end: make(chan struct{})}
			c.ctx, c.leave = context.WithCancel(t.Context())
			defer c.leave()
			for range waiters {
				c.callers.Go(c.call)
			}
			before := liveHeap()
			close(c.begin)
			await(t, "all wait", func() bool { return waiting.Load() == waiters+1 })
			each := (liveHeap() - before) / waiters

			begun := time.Now()
			if test.served {
				release(t, outer)
			} else {
				c.leave()
			}
			await(t, "none waits", func() bool { return c.through.Load() == waiters })
			took := time.Since(begun)
			release(t, outer)
			c.leave() // the context of the callers keeps room for all of them
			left := liveHeap() - before
			close(c.end)
			c.callers.Wait()

			t.Logf("%d bytes for each waiter; %d bytes left of all, after %v", each, left, took.Round(time.Millisecond))
			if each > most {
				t.Errorf("%d bytes for each waiter", each)
			}
			if left > least*waiters {
				t.Errorf("%d bytes left of the idle key", left)
			}
			if served := c.served.Load(); served+c.left.Load() != waiters || (served == waiters) != test.served {
				t.Errorf("%d were served and %d left", served, c.left.Load())
			}
		})
	}
}

// lock takes the key.
func lock(t *testing.T, locks *core.Locker) *core.Lease {
	t.Helper()
	lease, err := locks.Lock(t.Context(), theKey)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// release gives a lease back.
func release(t *testing.T, lease *core.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// Two processes want each of many keys, one after the other.
//
//faults:row 32: keys that nobody uses
func TestIdleKeysLeaveNothing(t *testing.T) {
	const keys, goroutines = 2_000, 8
	server := redistest.Start(t)
	admin := server.Client(t)
	// A connection costs more than many keys: all are there from the start.
	few := func(o *redis.Options) { o.PoolSize, o.MinIdleConns = 2, 2 }
	both := [2]*core.Locker{newLocker(t, server.Client(t, few)), newLocker(t, server.Client(t, few))}
	run := func(keys int, name string) {
		var group sync.WaitGroup
		for g := range goroutines {
			for _, locks := range both {
				group.Go(func() {
					for i := g; i < keys; i += goroutines {
						if err := locks.Do(t.Context(), name+strconv.Itoa(i), func(context.Context) error { return nil }); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		group.Wait()
		await(t, "no key is left", func() bool { return admin.DBSize(t.Context()).Val() == 0 })
	}
	run(keys/10, "warm")
	before := liveHeap()
	run(keys, "k")
	left := liveHeap() - before
	t.Logf("%d bytes left of %d keys", left, keys)
	if left > spared {
		t.Errorf("%d bytes left of %d idle keys", left, keys)
	}
}
