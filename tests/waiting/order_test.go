package waiting

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A recorder records the turns of one key. Its processes are Lockers of this process.
type recorder struct {
	mu    sync.Mutex
	turns turns
	begun time.Time
}

func newRecorder() *recorder { return &recorder{begun: time.Now().Add(-time.Second)} }

// now is the time of the recorder. It is never 0.
func (r *recorder) now() time.Duration { return time.Since(r.begun) }

// take takes one turn and records it.
func (r *recorder) take(t *testing.T, locks *core.Locker, one *turn, section time.Duration) {
	one.Asked = r.now()
	lease, err := locks.Lock(t.Context(), theKey)
	if err != nil {
		t.Errorf("%v: %v", one, err)
		return
	}
	one.Granted, one.Fence = r.now(), lease.Fence()
	if section > 0 {
		<-time.After(section)
	}
	one.Ended = r.now()
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("%v: %v", one, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns = append(r.turns, one)
}

// newTurn returns a turn of a goroutine.
func newTurn(process, goroutine, number int) *turn {
	one := &turn{goroutine: goroutine, number: number}
	one.Process = process
	return one
}

// newLocker returns a Locker with a client of its own, as a process has it. It is closed
// with the test.
func newLocker(t *testing.T, rdb *redis.Client, opts ...core.Option) *core.Locker {
	t.Helper()
	locks, err := core.New(rdb, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := locks.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return locks
}

// countWaiters makes an observer count the callers that wait.
func countWaiters(n *atomic.Int64) core.Option {
	return core.WithObserver(func(event core.Event) {
		if event.Kind == core.Waiting {
			n.Add(1)
		}
	})
}

// queueLength returns how many processes are in the queue of the key in Redis. The
// observer of a caller is informed a moment before that.
func queueLength(t *testing.T, rdb *redis.Client) int {
	t.Helper()
	n, err := rdb.LLen(t.Context(), "{reqlock:"+theKey+"}:q").Result()
	if err != nil {
		t.Error(err)
	}
	return int(n)
}

//faults:row 31
func TestFirstComeIsFirstServed(t *testing.T) {
	t.Parallel()
	const processes, goroutines = 4, 16
	for _, test := range []struct {
		name      string
		processOf func(i int) int
	}{
		{"processes alternate", func(i int) int { return i % processes }},
		{"one process after the other", func(i int) int { return i / goroutines }},
		{"in reverse", func(i int) int { return processes - 1 - i/goroutines }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			admin := server.Client(t)
			var waiting atomic.Int64
			var all []*core.Locker
			for range processes {
				all = append(all, newLocker(t, server.Client(t), core.WithFencing(true), countWaiters(&waiting)))
			}
			outer := lock(t, newLocker(t, server.Client(t), core.WithFencing(true)))
			r := newRecorder()
			var group sync.WaitGroup
			var arrived []int // processes, in the order of their first callers
			for i := range processes * goroutines {
				p := test.processOf(i)
				if !slices.Contains(arrived, p) {
					arrived = append(arrived, p)
				}
				group.Go(func() { r.take(t, all[p], newTurn(p, i, 0), 0) })
				suite.Eventually(t, "caller "+strconv.Itoa(i)+" waits", func() bool {
					return waiting.Load() == int64(i+1) && queueLength(t, admin) == len(arrived)
				})
			}
			release(t, outer)
			group.Wait()

			if len(r.turns) != processes*goroutines {
				t.Errorf("%d were served", len(r.turns))
			}
			holds := r.turns.holds()
			for _, violation := range slices.Concat(r.turns.overtakings(0), holds.Exclusion(), holds.Fences()) {
				t.Error(violation)
			}
			var served []int
			for _, one := range r.turns.granted() {
				if !slices.Contains(served, one.Process) {
					served = append(served, one.Process)
				}
			}
			if !slices.Equal(served, arrived) {
				t.Errorf("the processes arrived in the order %v and were served in the order %v", arrived, served)
			}
			t.Logf("processes served in the order %v, with %d hand-offs between them", served, r.turns.handOffs())
		})
	}
}

// Sections of 5 ms: a turn of a process ends by its time, after 10 sections.
func TestSlowHoldersTakeTurnsByTime(t *testing.T) {
	const processes, goroutines, section = 2, 8, 5 * time.Millisecond
	server := redistest.Start(t)
	r := newRecorder()
	var group sync.WaitGroup
	for p := range processes {
		locks := newLocker(t, server.Client(t), core.WithFencing(true))
		for g := range goroutines {
			group.Go(func() {
				for n := range suite.Size(5, 20) {
					r.take(t, locks, newTurn(p, g, n), section)
				}
			})
		}
	}
	group.Wait()
	holds := r.turns.holds()
	for _, violation := range slices.Concat(r.turns.monopolies(busyMachine), holds.Exclusion(), holds.Fences()) {
		t.Error(violation)
	}
	t.Logf("%d grants, %d hand-offs between processes, longest wait %v",
		len(r.turns), r.turns.handOffs(), r.turns.longestWait().Round(time.Millisecond))
}
