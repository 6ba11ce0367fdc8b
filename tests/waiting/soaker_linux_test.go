package waiting

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// soakKeys is how many keys a soak has. The last one is fenced.
const soakKeys = 4

// A soakRow is what a process of a soak tells of itself.
type soakRow struct {
	overlaps   atomic.Int64    // somebody went in although it held a valid lease
	ends       [8]atomic.Int64 // how its calls ended; see endNames
	goroutines [2]atomic.Int64 // before and after
	heap       [2]atomic.Int64 // bytes in use before and after
}

// The ends of a call.
const (
	endServed = iota
	endLost
	endBusy
	endCancelled
	endPanicked
	endUnavailable
)

var endNames = [...]string{"served", "lost", "busy", "cancelled", "panicked", "unavailable"}

// TestSoaker is a process of a soak.
func TestSoaker(t *testing.T) {
	o := ordersOf(t)
	table := mapTable(t, o.Table, o.Shape)
	row := &table.processes[o.Process]
	row.soaked.goroutines[0].Store(int64(runtime.NumGoroutine()))
	row.soaked.heap[0].Store(liveHeap())

	rdb := redis.NewClient(&redis.Options{Addr: o.Redis.Addrs[0]})
	s := newSoaker(t, rdb, o, table)
	row.ready.Store(1)
	for table.head.gate.Load() == 0 {
		nap(time.Millisecond)
	}
	s.run()
	if err := s.locks.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := rdb.Close(); err != nil {
		t.Error(err)
	}
	await(t, "the goroutines have ended", func() bool {
		row.soaked.goroutines[1].Store(int64(runtime.NumGoroutine()))
		return row.soaked.goroutines[1].Load() <= row.soaked.goroutines[0].Load()
	})
	row.soaked.heap[1].Store(liveHeap())
}

// A soaker is one process's part in a soak: its goroutines do all that callers
// do, until they are told to stop.
type soaker struct {
	t     *testing.T
	o     orders
	table *table
	row   *soakRow
	locks *core.Locker
}

func newSoaker(t *testing.T, rdb *redis.Client, o orders, table *table) *soaker {
	t.Helper()
	locks, err := core.New(rdb, core.WithTTL(o.TTL), core.WithCommandTimeout(o.Bound))
	if err != nil {
		t.Fatal(err)
	}
	return &soaker{t, o, table, &table.processes[o.Process].soaked, locks}
}

// run returns when the soak is over.
func (s *soaker) run() {
	var group sync.WaitGroup
	for g := range s.o.Shape.Goroutines {
		group.Go(func() {
			for s.table.head.stop.Load() == 0 {
				if end, err := s.call(g); err != nil {
					s.t.Errorf("goroutine %d: %v", g, err)
				} else {
					s.row.ends[end].Add(1)
				}
			}
		})
	}
	group.Wait()
}

// errBoom is what panics in a soak.
var errBoom = errors.New("boom")

// call is one call of a random kind. The error is one that should not be.
func (s *soaker) call(goroutine int) (end int, err error) {
	key := rand.IntN(soakKeys)
	name := "soak:" + strconv.Itoa(key)
	locks := s.locks.With(core.WithFencing(key == soakKeys-1))
	id := s.table.id(s.o.Process, goroutine, 0)
	briefly := func(lease *core.Lease) { s.inside(key, id, lease, func() { nap(rand.N(500 * time.Microsecond)) }) }
	ctx := s.t.Context()

	switch kind := rand.IntN(1000); {
	case kind < 250: // the caller leaves at any time
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rand.N(20*time.Millisecond))
		defer cancel()
		return s.lock(ctx, locks, name, briefly)
	case kind < 400: // the wait is bounded
		return s.lock(ctx, locks.With(core.WithWait(time.Millisecond+rand.N(20*time.Millisecond))), name, briefly)
	case kind < 450: // there is none
		return s.lock(ctx, locks.With(core.WithWait(0)), name, briefly)
	case kind < 550: // the code panics
		return s.panics(ctx, locks, name, briefly)
	case kind < 553: // the holder outlives its lease
		return s.lock(ctx, locks.With(core.WithTTL(200*time.Millisecond), core.WithRenewal(false)), name, func(lease *core.Lease) {
			s.inside(key, id, lease, func() { <-lease.Context().Done() })
			nap(50 * time.Millisecond)
		})
	case kind < 556: // or is told to come to an end
		return s.lock(ctx, locks.With(core.WithMaxHold(20*time.Millisecond)), name, func(lease *core.Lease) {
			s.inside(key, id, lease, func() { <-lease.Context().Done() })
		})
	case kind < 600: // another length of lease
		return s.lock(ctx, locks.With(core.WithTTL(s.o.TTL+rand.N(s.o.TTL))), name, briefly)
	default:
		return s.lock(ctx, locks, name, briefly)
	}
}

// lock takes a lock for a section.
func (s *soaker) lock(ctx context.Context, locks *core.Locker, name string, section func(*core.Lease)) (end int, err error) {
	lease, err := locks.Lock(ctx, name)
	if err != nil {
		return endOf(err)
	}
	section(lease)
	return endOf(lease.Release(s.t.Context()))
}

// panics runs a section that panics at its end.
func (s *soaker) panics(ctx context.Context, locks *core.Locker, name string, section func(*core.Lease)) (end int, err error) {
	defer func() {
		switch got := recover(); got {
		case nil:
		case errBoom:
			end, err = endPanicked, nil
		default:
			panic(got)
		}
	}()
	err = locks.Do(ctx, name, func(ctx context.Context) error {
		lease, _ := core.FromContext(ctx)
		section(lease)
		panic(errBoom)
	})
	return endOf(err)
}

// inside goes in for a section, and takes note if somebody else does meanwhile
// although the lease is valid. Who has stood still until its own is over stays out.
func (s *soaker) inside(key int, id int64, lease *core.Lease, section func()) {
	inside := &s.table.head.inside[key]
	valid := func() bool { return lease.Context().Err() == nil && time.Now().Before(lease.ValidUntil()) }
	if valid() {
		inside.Store(id)
		section()
		if !inside.CompareAndSwap(id, 0) && valid() {
			s.row.overlaps.Add(1)
		}
	}
	s.table.head.served[key].Add(1)
}

// endOf sorts the error of a call. One that should not be is returned.
func endOf(err error) (end int, unexpected error) {
	switch {
	case err == nil:
		return endServed, nil
	case errors.Is(err, core.ErrLost):
		return endLost, nil
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return endCancelled, nil
	case errors.Is(err, core.ErrBusy):
		return endBusy, nil
	case errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrClosed):
		return endUnavailable, nil
	default:
		return 0, fmt.Errorf("unexpected: %w", err)
	}
}
