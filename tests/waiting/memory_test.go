package waiting

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/subprocess"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMemoryOfManyWaiters(t *testing.T) { measureAlone(t, "waiters") }

func TestIdleKeysLeaveNothing(t *testing.T) { measureAlone(t, "idle keys") }

// measureAlone runs a measurement in a process of its own, because the other tests of this
// process allocate memory, too.
func measureAlone(t *testing.T, what string) {
	t.Helper()
	t.Parallel()
	redistest.Program(t)
	if subprocess.Start(t, "TestMeasurement", "nothing").Wait() == nil { // so a process that fails fails its test
		t.Error("the process of no measurement did not fail")
	}
	p := subprocess.Start(t, "TestMeasurement", what)
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	figures, isReported := p.ReportAfter("figures:")
	if !isReported {
		t.Fatal("nothing was measured")
	}
	t.Log(figures)
}

// TestMeasurement is the process of a measurement.
func TestMeasurement(t *testing.T) {
	switch what := subprocess.Orders[string](t); what {
	case "waiters":
		measureWaiters(t)
	case "idle keys":
		measureIdleKeys(t)
	default:
		t.Fatalf("no measurement of %s", what)
	}
}

// liveHeap returns the bytes of heap in use, without the stacks of goroutines.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // what pools and finalizers kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// heapTolerance is how many bytes of heap the runtime and the client may add.
const heapTolerance = 256 << 10

// callers are many callers of one Locker. Each caller needs only a pointer to them, so that
// the callers themselves take little memory.
type callers struct {
	locks      *core.Locker
	ctx        context.Context
	cancel     context.CancelFunc
	begin, end chan struct{}
	group      sync.WaitGroup
	done       atomic.Int64 // served or cancelled
	served     atomic.Int64
	cancelled  atomic.Int64
}

// call is one caller. It waits before and after its call, so that its goroutine exists at
// each measurement.
func (c *callers) call() {
	<-c.begin
	lease, err := c.locks.Lock(c.ctx, theKey)
	switch {
	case err == nil && lease.Release(c.ctx) == nil:
		c.served.Add(1)
	case errors.Is(err, context.Canceled):
		c.cancelled.Add(1)
	}
	c.done.Add(1)
	<-c.end
}

// measureWaiters fails the test if each waiter takes too much memory, or leaves some of it.
func measureWaiters(t *testing.T) {
	t.Helper()
	waiters := suite.Size(2_000, 10_000)
	const maxEach = 2 << 10 // bytes
	// The runtime keeps some bytes for the timers of the waiters. The rest is independent
	// of their number.
	maxLeft := int64(50*waiters) + heapTolerance
	var figures []string
	for _, test := range []struct {
		name   string
		wait   []core.Option
		served bool // otherwise they cancel
	}{
		{"that cancel", nil, false},
		{"that are served", nil, true},
		{"with a bounded wait", []core.Option{core.WithWait(time.Hour)}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := redistest.Start(t)
			var waiting atomic.Int64
			locks := newLocker(t, server.Client(t), core.WithMaxWaiters(waiters+1), countWaiters(&waiting)).With(test.wait...)
			other := newLocker(t, server.Client(t))

			// After some waiters that are served or cancel, the connections and the subscription exist.
			for range 4 {
				first, begun := lock(t, other), waiting.Load()
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 2)
				for _, ctx := range []context.Context{t.Context(), ctx} {
					go func() { done <- locks.Do(ctx, theKey, func(context.Context) error { return nil }) }()
				}
				suite.Eventually(t, "two callers wait", func() bool { return waiting.Load() == begun+2 })
				cancel()
				_ = suite.Receive(t, "one has left", done) // the one that has cancelled
				release(t, first)
				if err := suite.Receive(t, "the other one returns", done); err != nil {
					t.Fatal(err)
				}
			}
			waiting.Store(1)

			outer := lock(t, other)
			c := &callers{locks: locks, begin: make(chan struct{}), end: make(chan struct{})}
			c.ctx, c.cancel = context.WithCancel(t.Context())
			defer c.cancel()
			for range waiters {
				c.group.Go(c.call)
			}
			before := liveHeap()
			close(c.begin)
			suite.Eventually(t, "all wait", func() bool { return waiting.Load() == int64(waiters)+1 })
			each := (liveHeap() - before) / int64(waiters)

			begun := time.Now()
			if test.served {
				release(t, outer)
			} else {
				c.cancel()
			}
			suite.Eventually(t, "no caller waits", func() bool { return c.done.Load() == int64(waiters) })
			took := time.Since(begun)
			release(t, outer)
			c.cancel() // the context of the callers has memory for each of them
			left := liveHeap() - before
			close(c.end)
			c.group.Wait()

			figures = append(figures, fmt.Sprintf("%s: %d bytes for each waiter, %d bytes left of all after %v",
				test.name, each, left, took.Round(time.Millisecond)))
			if each > maxEach {
				t.Errorf("%d bytes for each waiter", each)
			}
			if left > maxLeft {
				t.Errorf("%d bytes left of the idle key", left)
			}
			if served := c.served.Load(); served+c.cancelled.Load() != int64(waiters) || (served == int64(waiters)) != test.served {
				t.Errorf("%d were served and %d cancelled", served, c.cancelled.Load())
			}
		})
	}
	subprocess.Report("figures:", strings.Join(figures, "; "))
}

// measureIdleKeys fails the test if keys leave memory after two Lockers have locked each of
// them, one after the other.
func measureIdleKeys(t *testing.T) {
	t.Helper()
	const goroutines = 8
	keys := suite.Size(4_000, 8_000)
	// Buffers in pools, which the runtime and the client fill and drop at any time, are up to
	// 700 KiB under the race detector, however many keys there are.
	const tolerance = 4 * heapTolerance // for each key 131 bytes, and 262 in the fast tier

	server := redistest.Start(t)
	admin := server.Client(t)
	// A connection takes more memory than many keys, so all connections are made before.
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
		suite.Eventually(t, "no key is left", func() bool { return admin.DBSize(t.Context()).Val() == 0 })
	}
	run(keys/10, "warm-up")
	before := liveHeap()
	run(keys, "k")
	left := liveHeap() - before
	subprocess.Report("figures:", fmt.Sprintf("%d bytes left of %d keys", left, keys))
	if left > tolerance {
		t.Errorf("%d bytes left of %d idle keys", left, keys)
	}
}
