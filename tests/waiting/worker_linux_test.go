package waiting

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// ordersEnv carries the orders of a worker process, as JSON. They make a test
// play it.
const ordersEnv = "LINETEST_ORDERS"

// orders are what a worker process is to do.
type orders struct {
	Redis   redistest.Options
	Table   string // path
	Shape   shape
	Process int
	TTL     time.Duration
	Bound   time.Duration // of a command
	Fencing bool
}

// ordersOf returns the orders of this process, and skips the test in one that
// has none.
func ordersOf(t *testing.T) (o orders) {
	t.Helper()
	text := os.Getenv(ordersEnv)
	if text == "" {
		t.Skip("only runs in the processes that other tests start")
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestWorker is a worker process: all its goroutines take their turns.
func TestWorker(t *testing.T) {
	o := ordersOf(t)
	w := &worker{t: t, orders: o, clock: newClock(), table: mapTable(t, o.Table, o.Shape)}
	w.row = &w.table.processes[o.Process]

	rdb := o.Redis.Client(t)
	rdb.AddHook(counter{&w.row.commands})
	var err error
	w.locks, err = core.New(rdb, core.WithTTL(o.TTL), core.WithCommandTimeout(o.Bound),
		core.WithFencing(o.Fencing), core.WithObserver(w.observe))
	if err != nil {
		t.Fatal(err)
	}

	w.row.ready.Store(1)
	for w.table.head.gate.Load() == 0 {
		nap(time.Millisecond)
	}
	var group sync.WaitGroup
	for g := range o.Shape.Goroutines {
		group.Go(func() {
			for n := range o.Shape.Turns {
				if !w.turn(t.Context(), g, n) {
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

// A worker takes turns.
type worker struct {
	t *testing.T
	orders
	clock clock
	table *table
	row   *processRow
	locks *core.Locker
}

func (w *worker) observe(event core.Event) {
	if event.Kind == core.Acquired {
		w.row.handovers[event.Handover].Add(1)
	}
}

// turn takes one turn and writes it down. It reports whether all went well.
func (w *worker) turn(ctx context.Context, goroutine, turn int) bool {
	id := w.table.id(w.Process, goroutine, turn)
	row := w.table.turn(id)
	row.asked.Store(monotonic())
	lease, err := w.locks.Lock(ctx, theKey)
	if err != nil {
		w.t.Errorf("goroutine %d, turn %d: lock: %v", goroutine, turn, err)
		return false
	}
	granted := monotonic()
	var told atomic.Int64 // when the context ended
	untold := context.AfterFunc(lease.Context(), func() { told.Store(monotonic()) })
	row.fence.Store(lease.Fence())
	row.episode.Store(episodeOf(lease))
	row.granted.Store(granted)
	w.row.grants.Add(1)

	inside := &w.table.head.inside[0]
	row.met.Store(inside.Swap(id))
	w.stayInside(lease, id)
	inside.CompareAndSwap(id, 0)

	end := w.clock.of(lease.ValidUntil())
	untold()
	if told := told.Load(); told != 0 {
		end = min(end, told)
	}
	if lease.Context().Err() != nil {
		row.lost.Store(1)
	}
	row.ended.Store(min(end, monotonic()))
	switch err := lease.Release(ctx); {
	case errors.Is(err, core.ErrLost):
		row.lost.Store(1)
	case errors.Is(err, core.ErrUnavailable): // the key falls by its TTL
	case err != nil:
		w.t.Errorf("goroutine %d, turn %d: release: %v", goroutine, turn, err)
		return false
	}
	return true
}

// stayInside is the section: three of four are empty, the others last up to a
// millisecond. The holder that is to linger stays until its lease ends.
func (w *worker) stayInside(lease *core.Lease, id int64) {
	if w.table.head.linger.CompareAndSwap(int64(w.Process)+1, -id) {
		<-lease.Context().Done()
		return
	}
	if id%4 == 0 {
		nap(rand.N(time.Millisecond))
	}
}

// episodeOf returns the number in a lease's token.
func episodeOf(lease *core.Lease) int64 {
	_, number, _ := strings.Cut(lease.Token(), ":")
	n, _ := strconv.ParseInt(number, 10, 64)
	return n
}
