package failover

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

const (
	waiterProcesses = 3
	waitersOfEach   = 2 // callers of each process, for each key
)

// waiters is the part of callers that wait for a lock when the master fails.
type waiters struct {
	*scenario
	waiting sync.WaitGroup
}

func (w *waiters) start() {
	all := w.keysAt(w.master, w.name+"-queue", 3)
	for _, other := range w.others(w.master) {
		all = append(all, w.keysAt(other, w.name+"-queue", 2)...)
	}
	holder := w.newProcess(0).locks.With(core.WithTTL(2*shortTTL), core.WithFencing(true), core.WithWait(patience))
	var leases []*history.Lease
	for _, key := range all {
		lease, err := w.history.Lock(w.ctx, holder, history.Op{Name: "the holder before the waiters", Key: key})
		if err != nil {
			w.t.Fatal(err)
		}
		leases = append(leases, lease)
	}
	w.group.Go(func() { // also if the scenario is aborted
		<-w.ctx.Done()
		w.waiting.Wait()
	})
	for n := range waiterProcesses {
		p := w.newProcess(n)
		for _, key := range all {
			for range waitersOfEach {
				w.waiting.Go(func() { w.turn(p, "a waiter", key) })
			}
		}
		for _, key := range all {
			suite.Eventually(w.t, "the waiters wait", func() bool { return p.count(waiting, key) == waitersOfEach })
		}
	}
	for _, lease := range leases {
		w.group.Go(func() {
			select {
			case <-w.failed:
			case <-w.ctx.Done():
			}
			err := lease.Release(context.Background())
			if err != nil && !errors.Is(err, core.ErrLost) && !errors.Is(err, core.ErrUnavailable) {
				w.t.Errorf("the release of a lock with waiters: %v", err)
			}
		})
	}
}

func (w *waiters) finish() {
	served := make(chan struct{})
	w.group.Go(func() {
		w.waiting.Wait()
		close(served)
	})
	suite.AwaitClosed(w.t, "all waiters are served", served)
}

// handOffs is the part of two processes that hand a lock of the master to each other.
// When the master is replaced one of them waits. Afterwards hand-offs must notify it
// again: without notifications a waiter depends on its timer.
type handOffs struct {
	*scenario
	key        string
	observer   redis.UniversalClient
	processes  [2]*process
	leases     [2]chan *core.Lease // of each process, when it is granted
	turns      int
	subscribed time.Time // since when both processes are subscribed
}

// settleTime is how long a new subscription checks repeatedly whether it is at the right
// master. After that it must detect the replacement of the master by itself.
const settleTime = 4 * time.Second

func (h *handOffs) start() {
	h.key = h.keysAt(h.master, h.name+"-handoff", 1)[0]
	h.observer = h.client(h.t, 0, nil)
	for i := range h.processes {
		h.processes[i] = h.newProcess(i)
	}
	h.wait(0)
	suite.Eventually(h.t, "the first of two processes has the lock", func() bool { return len(h.leases[0]) == 1 })
	h.wait(1)
	h.awaitQueue()
	h.handOff()
	h.subscribed = time.Now()
}

// wait makes a process wait for the lock, until the end of the scenario: see turn.
func (h *handOffs) wait(n int) {
	got := make(chan *core.Lease, 1)
	h.leases[n] = got
	h.group.Go(func() {
		lease, err := h.processes[n].locks.With(core.WithTTL(2*shortTTL)).Lock(h.ctx, h.key)
		if err != nil && h.ctx.Err() == nil {
			h.t.Errorf("a waiter for a hand-off: %v", err)
		}
		got <- lease
	})
}

// awaitQueue returns when one process is in the queue. If Redis has lost the queue, the
// waiter restores it at its next check. In the first hand-off after the repair, both processes
// may have been served, so that neither waits: a lease that the old master granted before it
// learned of the new one is lost.
func (h *handOffs) awaitQueue() {
	suite.Eventually(h.t, "one of two processes is in the queue", func() bool {
		isFirst := h.turns == 2 // start has made one
		bothServed := isFirst && len(h.leases[0])+len(h.leases[1]) == 2
		return bothServed || h.observer.LLen(context.Background(), "{"+prefix+h.key+"}:q").Val() == 1
	})
}

// handOff makes the holder release the lock to the other process, and wait for it.
func (h *handOffs) handOff() {
	holder := h.turns % 2
	h.turns++
	h.release(holder)
	suite.Eventually(h.t, "the other process has the lock", func() bool { return len(h.leases[1-holder]) == 1 })
	h.wait(holder)
	h.awaitQueue()
}

func (h *handOffs) release(n int) {
	var lease *core.Lease // nil if its process was not served, which is reported
	select {
	case lease = <-h.leases[n]:
	default:
	}
	err := lease.Release(context.Background())
	if err != nil && !errors.Is(err, core.ErrLost) && !errors.Is(err, core.ErrUnavailable) {
		h.t.Errorf("the release of a lock that is handed off: %v", err)
	}
}

// settle waits for settleTime in scenarios in which the subscriptions stay intact.
func (h *handOffs) settle() {
	if h.cluster != nil && h.failure.loss == nothing {
		time.Sleep(time.Until(h.subscribed.Add(settleTime)))
	}
}

func (h *handOffs) finish() {
	var before [2]int
	for i, p := range h.processes {
		before[i] = p.count(handed, h.key)
	}
	first := h.turns
	suite.Eventually(h.t, "each of two processes was notified by the other", func() bool {
		h.handOff()
		bothNotified := h.processes[0].count(handed, h.key) > before[0] && h.processes[1].count(handed, h.key) > before[1]
		return bothNotified || h.t.Failed() // each further hand-off would report the same failure
	})
	h.note("hand-offs work after %d turns", h.turns-first)
	holder := h.turns % 2
	h.release(holder)
	suite.Eventually(h.t, "the last process has the lock", func() bool { return len(h.leases[1-holder]) == 1 })
	h.release(1 - holder)
}
