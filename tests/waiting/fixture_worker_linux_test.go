package waiting

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/subprocess"
	"github.com/reqlock/reqlock/tests/internal/clock"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// orders tell a worker process what to do.
type orders struct {
	Redis   redistest.Options
	Table   string // path
	Size    tableSize
	Process int
	TTL     time.Duration
	Timeout time.Duration // of a command
	Fencing bool
	// Limit is that of the leases of all goroutines; 0 for exclusive leases.
	Limit int
	// Stream describes the goroutines of each process that take turns until the test stops
	// them; the others take their turns meanwhile.
	Stream stream
}

// A stream is the first goroutines of each process, which take leases with another limit. A
// stream of no goroutines is none.
type stream struct {
	Goroutines, Limit int
	Meanwhile         int // how many turns each other goroutine takes
}

func (o orders) limitOf(goroutine int) int {
	if goroutine < o.Stream.Goroutines {
		return o.Stream.Limit
	}
	return o.Limit
}

func (o orders) turnsOf(goroutine int) int {
	if o.Stream.Goroutines > 0 && goroutine >= o.Stream.Goroutines {
		return o.Stream.Meanwhile
	}
	return o.Size.Turns
}

// TestWorker is a worker process. Its goroutines take turns on the key.
func TestWorker(t *testing.T) {
	o := subprocess.Orders[orders](t)
	w := &worker{t: t, orders: o, clock: clock.New(), table: mapTable(t, o.Table, o.Size)}
	w.row = &w.table.processes[o.Process]

	rdb := o.Redis.Client(t)
	rdb.AddHook(commandCounter{&w.row.commands})
	var err error
	w.locks, err = core.New(rdb, core.WithTTL(o.TTL), core.WithCommandTimeout(o.Timeout),
		core.WithFencing(o.Fencing))
	if err != nil {
		t.Fatal(err)
	}

	w.row.ready.Store(1)
	for w.table.head.start.Load() == 0 {
		sleep(time.Millisecond)
	}
	var group sync.WaitGroup
	for g := range o.Size.Goroutines {
		group.Go(func() {
			locks := viewOf(w.locks, o.limitOf(g))
			for n := range o.turnsOf(g) {
				if g < o.Stream.Goroutines && w.table.head.stop.Load() != 0 || !w.takeTurn(t.Context(), locks, g, n) {
					return
				}
			}
		})
	}
	group.Wait()
	if err := w.locks.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func viewOf(locks *core.Locker, limit int) *core.Locker {
	switch {
	case limit == history.Unlimited:
		return locks.With(core.WithShared(true))
	case limit > 0:
		return locks.With(core.WithPermits(limit))
	default:
		return locks
	}
}

// A worker takes turns.
type worker struct {
	t *testing.T
	orders
	clock clock.Clock
	table *table
	row   *processRow
	locks *core.Locker
}

// takeTurn takes one turn and records it. It reports whether the turn had no error.
func (w *worker) takeTurn(ctx context.Context, locks *core.Locker, goroutine, number int) bool {
	id := w.table.id(w.Process, goroutine, number)
	row := w.table.turn(id)
	row.limit.Store(int64(w.limitOf(goroutine)))
	row.asked.Store(clock.Now())
	lease, err := locks.Lock(ctx, theKey)
	if err != nil {
		w.t.Errorf("goroutine %d, turn %d: lock: %v", goroutine, number, err)
		return false
	}
	granted := clock.Now()
	var lostAt atomic.Int64 // when the context ended
	stop := context.AfterFunc(lease.Context(), func() { lostAt.Store(clock.Now()) })
	row.fence.Store(lease.Fence())
	row.lease.Store(leaseNumber(lease))
	row.granted.Store(granted)
	w.row.grants.Add(1)

	w.stayInside(lease, id)

	left := clock.Now()
	end := min(left, w.clock.Of(lease.ValidUntil()))
	stop()
	if at := lostAt.Load(); at != 0 {
		end = min(end, at)
	}
	if lease.Context().Err() != nil {
		row.lost.Store(1)
	}
	row.left.Store(left)
	row.ended.Store(end)
	switch err := lease.Release(ctx); {
	case errors.Is(err, core.ErrLost):
		row.lost.Store(1)
	case errors.Is(err, core.ErrUnavailable): // the key expires
	case err != nil:
		w.t.Errorf("goroutine %d, turn %d: release: %v", goroutine, number, err)
		return false
	}
	return true
}

// stayInside is the critical section. Three of four are empty, except beside a stream, and
// the others last up to a millisecond. The holder that has to linger stays until its lease ends.
func (w *worker) stayInside(lease *core.Lease, id int64) {
	if w.table.head.linger.CompareAndSwap(int64(w.Process)+1, -id) {
		<-lease.Context().Done()
		return
	}
	if id%4 == 0 || w.Stream.Goroutines > 0 {
		sleep(rand.N(time.Millisecond))
	}
}

func leaseNumber(lease *core.Lease) int64 {
	_, number, _ := strings.Cut(lease.Token(), ":")
	n, _ := strconv.ParseInt(number, 10, 64)
	return n
}
