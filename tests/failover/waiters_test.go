package failover

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

const (
	waiterProcesses = 3
	waitersOfEach   = 2 // callers of each process, for each key
)

// waiters is the part of callers that wait for a lock when the master fails.
type waiters struct {
	*scenario
	here, there []string // keys of the master, and of other masters
	leases      []*core.Lease
	waiting     sync.WaitGroup
	mu          sync.Mutex
	last        time.Time // when the last waiter for a key of the master was served
}

func (w *waiters) start() {
	w.here = w.keysAt(w.master, w.name+"-queue", 3)
	for _, other := range w.others(w.master) {
		w.there = append(w.there, w.keysAt(other, w.name+"-queue", 2)...)
	}
	all := slices.Concat(w.here, w.there)
	holder := w.newProcess(0).locks.With(core.WithTTL(2*shortTTL), core.WithFencing(true), core.WithWait(patience))
	for _, key := range all {
		lease, err := holder.Lock(w.ctx, key)
		if err != nil {
			w.t.Fatal(err)
		}
		w.leases = append(w.leases, lease)
	}
	w.group.Go(func() { // also if the scenario is aborted
		<-w.ctx.Done()
		w.waiting.Wait()
	})
	for n := range waiterProcesses {
		p := w.newProcess(n)
		for i, key := range all {
			for range waitersOfEach {
				w.waiting.Go(func() {
					w.turn(p, "a waiter", key)
					w.mu.Lock()
					defer w.mu.Unlock()
					if now := time.Now(); i < len(w.here) && now.After(w.last) {
						w.last = now
					}
				})
			}
		}
		for _, key := range all {
			suite.Eventually(w.t, "the waiters wait", func() bool { return p.count(waiting, key) == waitersOfEach })
		}
	}
	for _, lease := range w.leases {
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

func (w *waiters) prepare() {}

func (w *waiters) replaced() {}

func (w *waiters) finish() {
	served := make(chan struct{})
	w.group.Go(func() {
		w.waiting.Wait()
		close(served)
	})
	suite.AwaitClosed(w.t, "all waiters are served", served)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.figures.last = w.last.Sub(w.at)
}
