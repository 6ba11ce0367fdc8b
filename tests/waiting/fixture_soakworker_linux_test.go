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
	"github.com/reqlock/reqlock/internal/testkit/gauges"
	"github.com/reqlock/reqlock/internal/testkit/subprocess"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// soakKeys is how many keys a soak has. The last one is fenced.
const soakKeys = 4

// A soakRow is what a process of a soak reports.
type soakRow struct {
	overlaps   atomic.Int64    // holds that met another hold while their leases were valid
	results    [8]atomic.Int64 // of its calls, by result
	goroutines [2]atomic.Int64 // before and after
	heap       [2]atomic.Int64 // bytes in use before and after
}

// The results of a call.
const (
	served = iota
	lost
	busy
	cancelled
	panicked
	unavailable
)

var resultNames = [...]string{"served", "lost", "busy", "cancelled", "panicked", "unavailable"}

// TestSoakWorker is a process of a soak.
func TestSoakWorker(t *testing.T) {
	o := subprocess.Orders[orders](t)
	table := mapTable(t, o.Table, o.Size)
	row := &table.processes[o.Process]
	row.soak.goroutines[0].Store(int64(runtime.NumGoroutine()))
	row.soak.heap[0].Store(liveHeap())

	rdb := redis.NewClient(&redis.Options{Addr: o.Redis.Addrs[0]})
	s := newSoakWorker(t, rdb, o, table)
	row.ready.Store(1)
	for table.head.start.Load() == 0 {
		sleep(time.Millisecond)
	}
	s.run()
	s.close()
	if err := rdb.Close(); err != nil {
		t.Error(err)
	}
	suite.Eventually(t, "the goroutines have ended", func() bool {
		row.soak.goroutines[1].Store(int64(runtime.NumGoroutine()))
		return row.soak.goroutines[1].Load() <= row.soak.goroutines[0].Load()
	})
	row.soak.heap[1].Store(liveHeap())
}

// A soakWorker is the part of one process in a soak. Its goroutines do everything that
// callers can do, until the soak stops.
type soakWorker struct {
	t     *testing.T
	o     orders
	table *table
	row   *soakRow
	locks *core.Locker
	// gauges are the leases and the waiting calls of the process, by the events.
	gauges *gauges.Gauges
}

func newSoakWorker(t *testing.T, rdb *redis.Client, o orders, table *table) *soakWorker {
	t.Helper()
	counts := &gauges.Gauges{}
	locks, err := core.New(rdb, core.WithTTL(o.TTL), core.WithCommandTimeout(o.Timeout), core.WithObserver(counts.Observe))
	if err != nil {
		t.Fatal(err)
	}
	return &soakWorker{t, o, table, &table.processes[o.Process].soak, locks, counts}
}

// close closes the Locker, and checks that each lease has been released and each wait has ended,
// by the events.
func (s *soakWorker) close() {
	s.t.Helper()
	if err := s.locks.Close(s.t.Context()); err != nil {
		s.t.Error(err)
	}
	if s.gauges.Count(core.Acquired) == 0 {
		s.t.Error("no lease was observed")
	}
	suite.Eventually(s.t, "the gauges balance", func() bool { return s.gauges.Unbalanced() == "" })
}

func (s *soakWorker) run() {
	var group sync.WaitGroup
	for g := range s.o.Size.Goroutines {
		group.Go(func() {
			for s.table.head.stop.Load() == 0 {
				if result, err := s.call(g); err != nil {
					s.t.Errorf("goroutine %d: %v", g, err)
				} else {
					s.row.results[result].Add(1)
				}
			}
		})
	}
	group.Wait()
}

// errPanic is the value of panics in a soak.
var errPanic = errors.New("panic of a soak")

// call makes one call of a random kind. The error is one that must not occur.
func (s *soakWorker) call(goroutine int) (result int, err error) {
	key := rand.IntN(soakKeys)
	name := "soak:" + strconv.Itoa(key)
	locks := s.locks.With(core.WithFencing(key == soakKeys-1))
	id := s.table.id(s.o.Process, goroutine, 0)
	briefly := func(lease *core.Lease) { s.inside(key, id, lease, func() { sleep(rand.N(500 * time.Microsecond)) }) }
	ctx := s.t.Context()

	switch kind := rand.IntN(1000); {
	case kind < 250: // the caller cancels at any time
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rand.N(20*time.Millisecond))
		defer cancel()
		return s.lock(ctx, locks, name, briefly)
	case kind < 400: // a bounded wait
		return s.lock(ctx, locks.With(core.WithWait(time.Millisecond+rand.N(20*time.Millisecond))), name, briefly)
	case kind < 450: // no wait
		return s.lock(ctx, locks.With(core.WithWait(0)), name, briefly)
	case kind < 550: // a panic
		return s.panics(ctx, locks, name, briefly)
	case kind < 553: // the holder outlives its lease
		return s.lock(ctx, locks.With(core.WithTTL(200*time.Millisecond), core.WithRenewal(false)), name, func(lease *core.Lease) {
			s.inside(key, id, lease, func() { <-lease.Context().Done() })
			sleep(50 * time.Millisecond)
		})
	case kind < 556: // the hold is limited
		return s.lock(ctx, locks.With(core.WithMaxHold(20*time.Millisecond)), name, func(lease *core.Lease) {
			s.inside(key, id, lease, func() { <-lease.Context().Done() })
		})
	case kind < 580: // several keys
		return s.several(ctx, s.locks, id)
	case kind < 620: // another TTL
		return s.lock(ctx, locks.With(core.WithTTL(s.o.TTL+rand.N(s.o.TTL))), name, briefly)
	default:
		return s.lock(ctx, locks, name, briefly)
	}
}

func (s *soakWorker) lock(ctx context.Context, locks *core.Locker, name string, section func(*core.Lease)) (result int, err error) {
	lease, err := locks.Lock(ctx, name)
	if err != nil {
		return resultOf(err)
	}
	section(lease)
	return resultOf(lease.Release(s.t.Context()))
}

// several takes two of the keys that are not fenced.
func (s *soakWorker) several(ctx context.Context, locks *core.Locker, id int64) (result int, err error) {
	first := rand.IntN(soakKeys - 1)
	second := (first + 1) % (soakKeys - 1)
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	names := []string{"soak:" + strconv.Itoa(first), "soak:" + strconv.Itoa(second)}
	return resultOf(locks.With(core.WithName("several")).DoAll(ctx, names, func(ctx context.Context) error {
		leases := core.LeasesFromContext(ctx)
		s.inside(first, id, leases[0], func() {
			s.inside(second, id, leases[1], func() { sleep(rand.N(500 * time.Microsecond)) })
		})
		return nil
	}))
}

func (s *soakWorker) panics(ctx context.Context, locks *core.Locker, name string, section func(*core.Lease)) (result int, err error) {
	defer func() {
		switch got := recover(); got {
		case nil:
		case errPanic:
			result, err = panicked, nil
		default:
			panic(got)
		}
	}()
	err = locks.Do(ctx, name, func(ctx context.Context) error {
		lease, _ := core.LeaseFromContext(ctx)
		section(lease)
		panic(errPanic)
	})
	return resultOf(err)
}

// inside runs a critical section, and records an overlap if another turn enters it while
// the lease is valid. A turn whose process was stopped until its lease ended does not enter.
func (s *soakWorker) inside(key int, id int64, lease *core.Lease, section func()) {
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

// resultOf returns the result of a call with this error. It returns an error that must
// not occur.
func resultOf(err error) (result int, unexpected error) {
	switch {
	case err == nil:
		return served, nil
	case errors.Is(err, core.ErrLost):
		return lost, nil
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return cancelled, nil
	case errors.Is(err, core.ErrBusy):
		return busy, nil
	case errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrClosed):
		return unavailable, nil
	default:
		return 0, fmt.Errorf("unexpected: %w", err)
	}
}
