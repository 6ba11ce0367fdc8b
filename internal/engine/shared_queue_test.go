package engine

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Permits pass within a process without a command, as long as no other process waits.
func TestPermitsPassWithoutCommands(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		holds := holdAll(t, p.engines[0], sharing(3, 0), 3)
		const n = 900
		var in, served atomic.Int64
		in.Store(3)
		for i := range n {
			waiting(t, p.engines[0], sharing(3, WaitForever), func(*Hold) {
				if now := in.Add(1); now > 3 {
					t.Errorf("%d at once", now)
				}
				if before := int(served.Add(1)) - 1; max(before-i, i-before) > 2 {
					t.Errorf("waiter %d is served after %d others", i, before)
				}
				time.Sleep(time.Millisecond)
				in.Add(-1)
			})
		}
		for _, h := range holds {
			in.Add(-1)
			release(t, h)
		}
		sleep(time.Second)
		if served.Load() != n {
			t.Errorf("%d served", served.Load())
		}
		// The budget of each first lease ends, since the process has not listened before.
		if got := counts(p.stores[0]); got["enqueue"] != 3 || got["release"] > 6 {
			t.Errorf("transitions %v", got)
		}
		if passed := p.events[0].of(Acquired)[n]; passed.Grant != Passed {
			t.Errorf("event %+v", passed)
		}
		p.checkIdle(t)
	})
}

// A waiter to which a lease passes gives up its place in the store's queue at once, and a
// release takes a place only for a waiter that has none.
func TestSharedWaitersHaveOnePlaceEach(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		first, other := hold(t, p.engines[0], sharing(2, 0)), hold(t, p.engines[1], sharing(2, 0))
		waiting(t, p.engines[0], sharing(2, WaitForever), func(*Hold) { time.Sleep(time.Second) })
		if queue := p.server.queue("k"); len(queue) != 1 {
			t.Fatalf("the queue is %v", queue)
		}
		release(t, first)
		synctest.Wait()
		if queue := p.server.queue("k"); len(queue) != 0 {
			t.Errorf("after the pass the queue is %v", queue)
		}
		p.stores[0].before.set(func(_ string, r storetest.AnyRequest) error {
			if r.Rejoin != "" {
				t.Error("a release rejoins for a waiter that has a place")
			}
			return nil
		})
		waiting(t, p.engines[0], sharing(2, WaitForever), func(*Hold) {})
		time.Sleep(2 * time.Second)
		release(t, other)
		p.checkIdle(t)
	})
}

// A caller that knows of contention takes a place in the store's queue with its first command.
func TestSharedCallerBehindWaitersJoinsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		writer := hold(t, p.engines[0], request(0))
		for i, want := range []int{2, 3, 4} {
			waiting(t, p.engines[1], sharing(store.Unlimited, WaitForever), func(*Hold) {})
			if got := len(p.stores[1].transitions()); got != want {
				t.Errorf("%d commands for %d waiters, want %d", got, i+1, want)
			}
		}
		if got := len(p.events[1].of(Waiting)); got != 3 {
			t.Errorf("%d events", got)
		}
		release(t, writer)
		time.Sleep(time.Second)
		p.checkIdle(t)
	})
}

// A permanent fault refuses all waiters, and their places are given up at once.
func TestPermanentFaultEndsAllSharedQueues(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		writer := hold(t, p.engines[0], request(0))
		var refused []<-chan error
		for range 5 {
			refused = append(refused, acquiring(t, p.engines[1], sharing(store.Unlimited, WaitForever)))
		}
		failed := false
		p.stores[1].before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "enqueue" && !failed {
				failed = true
				return &store.Fault{Err: errors.New("no permission")}
			}
			return nil
		})
		p.stores[1].hint("k", p.server.queue("k")[0])
		synctest.Wait()
		if queue := p.server.queue("k"); len(queue) != 0 {
			t.Errorf("the queue is %v", queue)
		}
		for _, r := range refused {
			if err := <-r; reasonOf(t, err) != Unavailable {
				t.Error(err)
			}
		}
		release(t, writer)
		p.checkIdle(t)
	})
}

// A dead exclusive token in the key is released by a shared caller that finds it.
func TestSharedCallerReleasesDeadExclusiveToken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		dead := deadToken(t, p.engines[0])
		p.server.set("k", dead, time.Hour)
		release(t, hold(t, p.engines[0], sharing(2, 0)))
		p.checkIdle(t)
	})
}

// Once others have waited for the key, a shared request wants the holder, and a release does not say
// that no token waits: their brief commands would be refused.
func TestSharedQueueRemembersThatOthersWaited(t *testing.T) {
	t.Parallel()
	root := &queue{}
	shared := &queue{waitlist: &waitlist{limit: store.Unlimited, root: root}}
	alone := &queue{waitlist: &waitlist{root: root}}
	if shared.sharedWithOthers() || alone.sharedWithOthers() {
		t.Error("nobody has waited")
	}
	root.shared.othersWaited = time.Now()
	if !shared.sharedWithOthers() || alone.sharedWithOthers() {
		t.Error("others have waited for a shared queue only")
	}
}
