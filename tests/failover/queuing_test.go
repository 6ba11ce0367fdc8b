package failover

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/reqlock/reqlock/core"
)

const (
	queuers    = 3 // processes
	queuerSize = 2 // callers of each, for each key
)

// queuing is the part of those who wait for a lock when the master fails.
type queuing struct {
	*scene
	here, there []string // keys of the master, and of others
	leases      []*core.Lease
	waiters     sync.WaitGroup
	mu          sync.Mutex
	last        time.Time // when the last waiter on a key of the master was served
}

func (q *queuing) begin() {
	q.here = q.keysAt(q.master, q.name+"-queue", 3)
	for _, other := range q.others(q.master) {
		q.there = append(q.there, q.keysAt(other, q.name+"-queue", 2)...)
	}
	all := slices.Concat(q.here, q.there)
	holder := q.process(0).locks.With(core.WithTTL(2*shortTTL), core.WithFencing(true), core.WithWait(patience))
	for _, key := range all {
		lease, err := holder.Lock(q.ctx, key)
		if err != nil {
			q.t.Fatal(err)
		}
		q.leases = append(q.leases, lease)
	}
	q.group.Go(func() { // also where the scene is broken off
		<-q.ctx.Done()
		q.waiters.Wait()
	})
	for n := range queuers {
		p := q.process(n)
		for i, key := range all {
			for range queuerSize {
				q.waiters.Go(func() {
					q.turn(p, "a waiter", key)
					q.mu.Lock()
					defer q.mu.Unlock()
					if now := time.Now(); i < len(q.here) && now.After(q.last) {
						q.last = now
					}
				})
			}
		}
		for _, key := range all {
			await(q.t, "the waiters wait", func() bool { return p.told(waiting, key) == queuerSize })
		}
	}
	for _, lease := range q.leases {
		q.group.Go(func() {
			select {
			case <-q.struck:
			case <-q.ctx.Done():
			}
			err := lease.Release(context.Background())
			if err != nil && !errors.Is(err, core.ErrLost) && !errors.Is(err, core.ErrUnavailable) {
				q.t.Errorf("the release of a lock that is waited for: %v", err)
			}
		})
	}
}

func (q *queuing) poise() {}

func (q *queuing) replace() {}

func (q *queuing) end() {
	served := make(chan struct{})
	q.group.Go(func() {
		q.waiters.Wait()
		close(served)
	})
	awaitClosed(q.t, "all who wait are served", served)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.figures.last = q.last.Sub(q.at)
}
