package waiting

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A notebook writes the holds of one key down, for processes that are Lockers
// of this one.
type notebook struct {
	mu    sync.Mutex
	holds history
	begun time.Time
}

func newNotebook() *notebook { return &notebook{begun: time.Now().Add(-time.Second)} }

// now is the time in the notebook; never 0.
func (n *notebook) now() int64 { return time.Since(n.begun).Nanoseconds() }

// hold takes one turn and writes it down.
func (n *notebook) hold(t *testing.T, locks *core.Locker, one *hold, section time.Duration) {
	one.asked = n.now()
	lease, err := locks.Lock(t.Context(), theKey)
	if err != nil {
		t.Errorf("%v: %v", one, err)
		return
	}
	one.granted, one.fence = n.now(), lease.Fence()
	if section > 0 {
		<-time.After(section)
	}
	one.ended = n.now()
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("%v: %v", one, err)
	}
	n.mu.Lock()
	n.holds = append(n.holds, one)
	n.mu.Unlock()
}

// newLocker returns a Locker with a client of its own, as a process has it. It
// is closed with the test.
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

// waitingFor counts, as an observer, who was told to wait.
func waitingFor(n *atomic.Int64) core.Option {
	return core.WithObserver(func(event core.Event) {
		if event.Kind == core.Waiting {
			n.Add(1)
		}
	})
}

// await polls until the condition holds.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(30 * time.Second); !condition(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("not so in time: %s", what)
		}
	}
}

// inLine returns how many processes stand in the line of the key, in Redis. A
// caller is told that it waits a moment before.
func inLine(t *testing.T, rdb *redis.Client) int {
	t.Helper()
	n, err := rdb.LLen(t.Context(), "{reqlock:"+theKey+"}:q").Result()
	if err != nil {
		t.Error(err)
	}
	return int(n)
}

//faults:row 31
func TestWhoCameFirstIsServedFirst(t *testing.T) {
	const processes, goroutines = 4, 16
	server := redistest.Start(t)
	admin := server.Client(t)
	var waiting atomic.Int64
	var all []*core.Locker
	for range processes {
		all = append(all, newLocker(t, server.Client(t), core.WithFencing(true), waitingFor(&waiting)))
	}
	for _, test := range []struct {
		name  string
		place func(i int) (process int)
	}{
		{"by turns", func(i int) int { return i % processes }},
		{"one process after the other", func(i int) int { return i / goroutines }},
		{"backwards", func(i int) int { return processes - 1 - i/goroutines }},
	} {
		t.Run(test.name, func(t *testing.T) {
			outer := lock(t, newLocker(t, server.Client(t), core.WithFencing(true)))
			waiting.Store(0)
			book := newNotebook()
			var group sync.WaitGroup
			var arrival []int // of the processes
			for i := range processes * goroutines {
				p := test.place(i)
				if len(arrival) == 0 || len(arrival) < processes && arrival[len(arrival)-1] != p {
					arrival = append(arrival, p)
				}
				group.Go(func() { book.hold(t, all[p], &hold{process: p, goroutine: i}, 0) })
				await(t, "number "+strconv.Itoa(i)+" waits", func() bool {
					return waiting.Load() == int64(i+1) && inLine(t, admin) == len(arrival)
				})
			}
			release(t, outer)
			group.Wait()

			if len(book.holds) != processes*goroutines {
				t.Errorf("%d were served", len(book.holds))
			}
			for _, found := range append(append(book.holds.jumped(0), book.holds.overlaps()...), book.holds.falls()...) {
				t.Error(found)
			}
			var served []int
			seen := map[int]bool{}
			for _, one := range book.holds.grants() {
				if !seen[one.process] {
					seen[one.process] = true
					served = append(served, one.process)
				}
			}
			for i := range served {
				if served[i] != arrival[i] {
					t.Fatalf("the processes came in the order %v and were served in the order %v", arrival, served)
				}
			}
			t.Logf("processes served in the order %v, with %d hand-offs between them", served, book.holds.handOffs())
		})
	}
}

// Sections of 5 ms: a turn ends by its time, after 10 of them.
func TestSlowHoldersTakeTurnsByTime(t *testing.T) {
	const processes, goroutines, turns, section = 2, 8, 20, 5 * time.Millisecond
	server := redistest.Start(t)
	book := newNotebook()
	var group sync.WaitGroup
	for p := range processes {
		locks := newLocker(t, server.Client(t), core.WithFencing(true))
		for g := range goroutines {
			group.Go(func() {
				for n := range turns {
					book.hold(t, locks, &hold{process: p, goroutine: g, turn: n}, section)
				}
			})
		}
	}
	group.Wait()
	for _, found := range append(append(book.holds.hogs(patient), book.holds.overlaps()...), book.holds.falls()...) {
		t.Error(found)
	}
	t.Logf("%d grants, %d hand-offs between processes, longest wait %v",
		len(book.holds), book.holds.handOffs(), book.holds.longestWait().Round(time.Millisecond))
}
