package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// mixes are the limits of the callers of a key.
var mixes = [][]store.Limit{
	{store.Unlimited, store.Exclusive},
	{store.Unlimited, store.Unlimited, store.Unlimited, store.Exclusive},
	{3},
	{3, store.Exclusive},
	{1, store.Unlimited},
	{2, 5}, // a deploy
	{2, 5, store.Unlimited, store.Exclusive},
}

// Callers with all limits run in several processes among faults of all kinds, except faults
// that outlast a lease. There are never more holders than their limit, and none beside an
// exclusive one. Every caller that waits is served, and nothing is left. The name of a run
// is its seed.
func TestLimitsAtRandom(t *testing.T) {
	t.Parallel()
	for seed := range suite.Size(2*fewRuns, allRuns/4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				run := &limitsRun{randomRun: newRandomRun(uint64(seed)), holders: make(map[store.Limit]int)}
				run.mix = mixes[seed%len(mixes)]
				run.run(t)
			})
		})
	}
}

// A limitsRun is a randomRun with callers of several limits.
type limitsRun struct {
	*randomRun
	mix     []store.Limit
	holders map[store.Limit]int
	served  int
	longest time.Duration
}

func (run *limitsRun) request() Request {
	r := request(WaitForever)
	r.Limit = run.mix[run.choose(len(run.mix))]
	r.Fencing = run.choose(3) == 0
	switch run.choose(6) {
	case 0:
		r.Wait = 0
	case 1:
		r.TTL = 20 * time.Second
	case 2:
		r.Wait = run.upTo(5*time.Second) + time.Millisecond
	}
	return r
}

func (run *limitsRun) run(t *testing.T) {
	var group sync.WaitGroup
	for range 80 {
		group.Go(func() {
			time.Sleep(run.upTo(15 * time.Second))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if run.choose(4) == 0 {
				time.AfterFunc(run.upTo(3*time.Second), cancel)
			}
			begun := time.Now()
			h, err := run.engines[run.choose(len(run.engines))].Acquire(ctx, run.request())
			if err == nil {
				run.note(func() { run.longest = max(run.longest, time.Since(begun)) })
				run.hold(t, h)
			}
		})
	}
	for i := range run.engines {
		group.Go(func() { run.forge(i) })
	}
	group.Go(run.loseHints)
	group.Wait()
	if run.longest > 45*time.Second || run.served == 0 {
		t.Errorf("%d served, the longest wait was %v", run.served, run.longest)
	}
	time.Sleep(3 * time.Minute) // by then all tokens that were given up are released
	run.checkIdle(t)
}

// hold holds the lease for a while.
func (run *limitsRun) hold(t *testing.T, h *Hold) {
	limit := h.request.Limit
	run.note(func() {
		run.holders[limit]++
		run.served++
		total, most := 0, store.Limit(1)
		for l, n := range run.holders {
			total += n
			if n > 0 && most != store.Unlimited {
				most = max(most, l)
			}
			if l == store.Unlimited && n > 0 {
				most = store.Unlimited
			}
		}
		switch {
		case run.holders[store.Exclusive] > 0 && total > 1:
			t.Errorf("beside an exclusive lease: %v", run.holders)
		case limit > 0 && run.holders[limit] > int(limit), most > 0 && total > int(most):
			t.Errorf("more than their limits: %v", run.holders)
		}
	})
	h.checkCount(t)
	time.Sleep(run.upTo(500 * time.Millisecond))
	run.note(func() { run.holders[limit]-- })
	if loss, _ := h.Release(context.Background()); loss != NotLost {
		t.Errorf("loss %v", loss)
	}
}

// checkCount fails the test unless the list of the hold counts its leases with a holder.
func (h *Hold) checkCount(t *testing.T) {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	l, n := h.lease.queue.waitlist, 0
	for _, q := range h.lease.queue.root.allQueues() {
		if q.waitlist == l && q.hasHolder() {
			n++
		}
	}
	if l.holders != n {
		t.Errorf("limit %d: %d leases have a holder, counted %d", l.limit, n, l.holders)
	}
}

// loseHints loses hints, and subscriptions, again and again.
func (run *limitsRun) loseHints() {
	for time.Now().Before(run.faultsEnd) {
		time.Sleep(run.upTo(time.Second))
		lost := run.choose(2) == 0
		run.server.mu.Lock()
		run.server.hintsLost = lost
		run.server.mu.Unlock()
		s := run.stores[run.choose(len(run.stores))]
		s.loseSubscription(true)
		time.Sleep(run.upTo(100 * time.Millisecond))
		s.loseSubscription(false)
		s.hint("k", "")
	}
	run.server.mu.Lock()
	run.server.hintsLost = false
	run.server.mu.Unlock()
}
