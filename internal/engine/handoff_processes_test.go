package engine

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestProcessesAreServedInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
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
			if got := p.events[i].of(Acquired); len(got) != 1 || got[0].Grant != Handed {
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
	bubble(t, func(t *testing.T) {
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
		commands := len(p.stores[0].transitions()) + len(p.stores[1].transitions())
		if most := 4 + 2*(turns+2); commands > most {
			t.Errorf("%d commands for %d turns, want at most %d", commands, turns, most)
		}
		p.checkIdle(t)
	})
}

func TestWaitersSendNoCommands(t *testing.T) {
	bubble(t, func(t *testing.T) {
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

func TestLeavingCallerLeavesStoreQueue(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		wait  time.Duration
		leave func(t *testing.T, e *Engine, cancel func())
		want  Reason
	}{
		"its wait is over":      {time.Second, func(*testing.T, *Engine, func()) {}, TimedOut},
		"its context has ended": {WaitForever, func(_ *testing.T, _ *Engine, cancel func()) { cancel() }, TimedOut},
		"its process closes":    {WaitForever, func(t *testing.T, e *Engine, _ func()) { closes(t, e) }, ClosedDown},
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(2)
			h := hold(t, p.engines[0], request(0))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			left := make(chan error, 1)
			go func() {
				_, err := p.engines[1].Acquire(ctx, request(test.wait))
				left <- err
			}()
			time.Sleep(time.Second)
			test.leave(t, p.engines[1], cancel)
			if err := <-left; reasonOf(t, err) != test.want {
				t.Errorf("leaving caller: %v", err)
			}
			synctest.Wait()
			if line := p.server.queue("k"); len(line) != 0 {
				t.Errorf("in the queue: %v", line)
			}
			release(t, h)
			p.checkIdle(t)
		})
	}
}

func TestHandOffToLeavingCallerIsPassedOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(3)
		h := hold(t, p.engines[0], request(0))
		cancel := leaving(t, p.engines[1], request(WaitForever))
		var served time.Time
		waiting(t, p.engines[2], request(WaitForever), func(*Hold) { served = time.Now() })
		cancel()
		p.stores[1].before.set(delays(10 * time.Millisecond))
		release(t, h) // the key is handed to the caller that leaves
		begun := time.Now()
		sleep(time.Second)
		if late := served.Sub(begun); late < 0 || late > 100*time.Millisecond {
			t.Errorf("served %v late", late)
		}
		p.checkIdle(t)
	})
}

func TestPassesAreUnlimitedUntilAnotherProcessWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
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
		sleep(500*time.Millisecond - time.Microsecond)
		if got := p.stores[0].transitions(); !slices.Equal(got, []string{"take", "release"}) || served.Load() < 499 {
			t.Fatalf("%d served, transitions %v", served.Load(), got)
		}
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) { after.Store(served.Load()) })
		sleep(time.Second)
		if limit := int64(500 + 51); after.Load() < 500 || after.Load() > limit {
			t.Errorf("the other process was served after %d, want at most %d", after.Load(), limit)
		}
		if served.Load() != 900 {
			t.Errorf("%d served", served.Load())
		}
		p.checkIdle(t)
	})
}
