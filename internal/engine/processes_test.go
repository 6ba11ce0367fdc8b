package engine

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// processes are engines on one server.
type processes struct {
	server  *fakeServer
	engines []*Engine
	stores  []*fakeStore
	events  []*recorder
}

func newProcesses(n int) *processes {
	p := &processes{server: newFakeServer()}
	for i := range n {
		e, s, r := newEngineOn(p.server, fmt.Sprintf("p%d", i))
		p.engines, p.stores, p.events = append(p.engines, e), append(p.stores, s), append(p.events, r)
	}
	return p
}

// checkIdle fails the test if a key, a queue, a waiter or a subscription is left.
func (p *processes) checkIdle(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if value, line := p.server.value("k"), p.server.queue("k"); value != "" || len(line) != 0 {
		t.Errorf("left: key %q, queue %v", value, line)
	}
	for i, e := range p.engines {
		if e.queueCount() != 0 || p.stores[i].listens() || e.limits.waiting.Load() != 0 {
			t.Errorf("process %d: %d queues, listens %v, %d wait", i, e.queueCount(), p.stores[i].listens(), e.limits.waiting.Load())
		}
	}
}

func TestProcessesAreServedInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(5)
		h := hold(t, p.engines[0], request(0))
		begun := time.Now()
		var order []int
		for i := 4; i > 0; i-- {
			waiting(t, p.engines[i], request(WaitForever), func(*Hold) { order = append(order, i) })
		}
		release(t, h)
		synctest.Wait()
		if !slices.Equal(order, []int{4, 3, 2, 1}) || time.Since(begun) != 0 {
			t.Errorf("served in the order %v in %v", order, time.Since(begun))
		}
		for i := 1; i < 5; i++ {
			if got := p.events[i].of(Acquired); len(got) != 1 || got[0].Handover != Handed {
				t.Errorf("process %d: %+v", i, got)
			}
			// refused, in the queue, confirmed, released
			if got := p.stores[i].transitions(); !slices.Equal(got, []string{"take", "enqueue", "enqueue", "release"}) {
				t.Errorf("process %d: transitions %v", i, got)
			}
		}
		p.checkIdle(t)
	})
}

func TestProcessesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], request(0))
		const n = 3 * maxPasses
		var order []int
		for range n {
			for i := range p.engines {
				waiting(t, p.engines[i], request(WaitForever), func(*Hold) { order = append(order, i) })
			}
		}
		release(t, h)
		synctest.Wait()
		if len(order) != 2*n {
			t.Fatalf("%d of %d served", len(order), 2*n)
		}
		turns, longest, turn := 0, 0, 0
		for i := range order {
			if i > 0 && order[i] != order[i-1] {
				turns, turn = turns+1, 0
			}
			turn++
			longest = max(longest, turn)
		}
		if longest > maxPasses+1 || turns < 5 {
			t.Errorf("%d turns, the longest of %d", turns, longest)
		}
		commands := 0
		for _, s := range p.stores {
			commands += len(s.transitions())
		}
		if most := 4 + 2*(turns+2); commands > most {
			t.Errorf("%d commands for %d turns, want at most %d", commands, turns, most)
		}
		p.checkIdle(t)
	})
}

func TestPassesAreUnlimitedUntilAnotherProcessWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], request(0))
		var served, after atomic.Int64
		for range 900 {
			waiting(t, p.engines[0], request(WaitForever), func(*Hold) {
				time.Sleep(time.Millisecond)
				served.Add(1)
			})
		}
		release(t, h)
		time.Sleep(500*time.Millisecond - time.Microsecond)
		synctest.Wait()
		if got := p.stores[0].transitions(); !slices.Equal(got, []string{"take", "release"}) || served.Load() < 499 {
			t.Fatalf("%d served, transitions %v", served.Load(), got)
		}
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) { after.Store(served.Load()) })
		time.Sleep(time.Second)
		synctest.Wait()
		if limit := int64(500 + 51); after.Load() < 500 || after.Load() > limit {
			t.Errorf("the other process was served after %d, want at most %d", after.Load(), limit)
		}
		if served.Load() != 900 {
			t.Errorf("%d served", served.Load())
		}
		p.checkIdle(t)
	})
}

func TestLeavingCallerLeavesStoreQueue(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Request{
		"its wait is over":      request(time.Second),
		"its context has ended": request(WaitForever),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(3)
				h := hold(t, p.engines[0], request(0))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := p.engines[1].Acquire(ctx, r)
				if reasonOf(t, err) != TimedOut {
					t.Errorf("leaving caller: %v", err)
				}
				synctest.Wait()
				if line := p.server.queue("k"); len(line) != 0 {
					t.Errorf("in the queue: %v", line)
				}
				release(t, h)
				p.checkIdle(t)
			})
		})
	}
}

func TestHandOffToLeavingCallerIsPassedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(3)
		h := hold(t, p.engines[0], request(0))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = p.engines[1].Acquire(ctx, request(WaitForever)) }()
		synctest.Wait()
		var served time.Time
		waiting(t, p.engines[2], request(WaitForever), func(*Hold) { served = time.Now() })
		cancel()
		p.stores[1].before.set(func(string, storetest.AnyRequest) error { time.Sleep(10 * time.Millisecond); return nil })
		release(t, h) // the key is handed to the caller that leaves
		begun := time.Now()
		time.Sleep(time.Second)
		synctest.Wait()
		if late := served.Sub(begun); late < 0 || late > 100*time.Millisecond {
			t.Errorf("served %v late", late)
		}
		p.checkIdle(t)
	})
}

func TestWaitersSendNoCommands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], request(0))
		for range 50 {
			waiting(t, p.engines[1], request(WaitForever), func(*Hold) {})
		}
		before := len(p.stores[1].transitions())
		time.Sleep(time.Second)
		if got := len(p.stores[1].transitions()) - before; got > 1 {
			t.Errorf("%d commands while 50 waited a second", got)
		}
		if before != 2 {
			t.Errorf("%d commands to join the queue", before)
		}
		release(t, h)
		p.checkIdle(t)
	})
}

func TestFencesRise(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(3)
		r := request(WaitForever)
		r.Fencing = true
		h := hold(t, p.engines[0], r)
		last := h.Fence()
		if last == 0 {
			t.Fatal("no fence")
		}
		served := 0
		for i := range 2 * maxPasses {
			for n, e := range p.engines {
				r := r
				r.Renew = (i+n)%5 != 0 // a successor without renewal needs a renewal before the pass
				waiting(t, e, r, func(h *Hold) {
					if h.Fence() <= last {
						t.Errorf("fence %d after %d", h.Fence(), last)
					}
					last = h.Fence()
					served++
				})
			}
		}
		release(t, h)
		synctest.Wait()
		if served != 6*maxPasses {
			t.Errorf("%d served", served)
		}
		h = hold(t, p.engines[0], request(0))
		if h.Fence() != 0 {
			t.Error("a fence without Fencing")
		}
		release(t, h)
		p.checkIdle(t)
	})
}

func TestCloseLeavesStoreQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], request(0))
		go func() {
			if _, err := p.engines[1].Acquire(t.Context(), request(WaitForever)); reasonOf(t, err) != ClosedDown {
				t.Errorf("waiter: %v", err)
			}
		}()
		synctest.Wait()
		if err := p.engines[1].Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if line := p.server.queue("k"); len(line) != 0 {
			t.Errorf("in the queue: %v", line)
		}
		release(t, h)
		p.checkIdle(t)
	})
}
