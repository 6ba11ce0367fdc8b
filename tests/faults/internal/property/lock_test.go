package property

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/reqlock/reqlock/core"
)

// A lockTest tests one key.
type lockTest struct {
	*rapid.T
	table *deployment

	mu          sync.Mutex
	waiting     []*caller // calls that have not returned
	holders     []*caller // calls that were granted, and have not released
	round       int
	losses      int             // losses of data so far
	staleTokens map[string]bool // tokens of leases that Redis may have lost
	served      []*caller       // all calls that were granted, in order
	disrupted   bool            // whether anything was disrupted
	errors      []error         // unexpected errors of calls
}

// A caller is a call for the key.
type caller struct {
	cancel context.CancelFunc
	losses int // the number of losses before the call
	round  int // in which it was granted
	lease  *core.Lease
}

func TestLocks(t *testing.T) {
	for name, renewal := range map[string]bool{"renewed": true, "not renewed": false} {
		t.Run(name, func(t *testing.T) { checkSequences(t, testLocks, core.WithRenewal(renewal)) })
	}
}

func testLocks(rt *rapid.T, table *deployment) {
	g := &lockTest{T: rt, table: table, staleTokens: map[string]bool{}}
	rt.Repeat(map[string]func(*rapid.T){
		"lock":    func(*rapid.T) { g.ask(false) },
		"try":     func(*rapid.T) { g.ask(true) },
		"extend":  func(*rapid.T) { g.extend() },
		"release": func(*rapid.T) { g.release() },
		"cancel":  func(*rapid.T) { g.cancel() },
		"advance": func(*rapid.T) {
			time.Sleep(time.Duration(rapid.IntRange(1, 12_000).Draw(rt, "ms")) * time.Millisecond)
		},
		"lose a reply": func(*rapid.T) { g.recordDisruption(); table.anyProcess(rt).network.loseNextReply() },
		"cut":          func(*rapid.T) { g.recordDisruption(); table.anyProcess(rt).network.cut() },
		"mend":         func(*rapid.T) { table.anyProcess(rt).network.restore() },
		"restart":      func(*rapid.T) { g.loseData(table.server.FlushAll) },
		"delete":       func(*rapid.T) { g.loseData(func() { table.server.Del("reqlock:k") }) },
		"":             func(*rapid.T) { g.check() },
	})
	g.drain()
}

// ask calls Lock or TryLock on another goroutine.
func (g *lockTest) ask(try bool) {
	if len(g.snapshot(&g.waiting)) >= 5 {
		g.Skip("enough callers wait")
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &caller{cancel: cancel, losses: g.losses}
	p := g.table.anyProcess(g.T)
	g.mu.Lock()
	g.waiting = append(g.waiting, c)
	g.mu.Unlock()
	go func() {
		ask := p.locks.Lock
		if try {
			ask = p.locks.TryLock
		}
		lease, err := ask(ctx, "k")
		g.mu.Lock()
		defer g.mu.Unlock()
		g.waiting = slices.DeleteFunc(g.waiting, func(one *caller) bool { return one == c })
		switch {
		case err == nil:
			c.lease, c.round = lease, g.round
			g.holders = append(g.holders, c)
			g.served = append(g.served, c)
		case errors.Is(err, core.ErrBusy) && try, errors.Is(err, context.Canceled):
		case errors.Is(err, core.ErrUnavailable) && g.disrupted:
		default:
			g.errors = append(g.errors, err)
		}
	}()
}

// snapshot returns a copy of a list.
func (g *lockTest) snapshot(list *[]*caller) []*caller {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(*list)
}

// recordDisruption records that errors are possible from now on.
func (g *lockTest) recordDisruption() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.disrupted = true
}

// any draws a caller.
func (g *lockTest) any(of []*caller) *caller {
	if len(of) == 0 {
		g.Skip("no caller")
	}
	return of[rapid.IntRange(0, len(of)-1).Draw(g.T, "who")]
}

func (g *lockTest) extend() {
	lease := g.any(g.snapshot(&g.holders)).lease
	err := lease.Extend(context.Background(), ttl)
	ended := lease.Context().Err() != nil
	if err != nil && !g.disrupted && !ended {
		g.Fatalf("extend: %v", err)
	}
	if err == nil && time.Until(lease.ValidUntil()) < ttl*9/10 {
		g.Fatalf("extended, and valid only for %v", time.Until(lease.ValidUntil()))
	}
}

func (g *lockTest) release() {
	c := g.any(g.snapshot(&g.holders))
	whole := c.lease.Context().Err() == nil
	err := c.lease.Release(context.Background())
	if err != nil && whole && !g.disrupted {
		g.Fatalf("release: %v", err)
	}
	if c.lease.Context().Err() == nil {
		g.Fatal("released, and its context goes on")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holders = slices.DeleteFunc(g.holders, func(one *caller) bool { return one == c })
}

func (g *lockTest) cancel() { g.any(g.snapshot(&g.waiting)).cancel() }

// loseData deletes data of Redis. After that the fencing numbers start at its clock, which
// must have advanced: a fake clock does not advance by itself.
func (g *lockTest) loseData(forget func()) {
	time.Sleep(time.Second)
	synctest.Wait()
	g.recordDisruption()
	g.losses++
	forget()
	for _, c := range g.snapshot(&g.holders) {
		g.staleTokens[c.lease.Token()] = true
	}
}

// isStale reports whether Redis may have lost the lease, or granted it before it lost other
// leases.
func (g *lockTest) isStale(c *caller) bool {
	return c.losses < g.losses || g.staleTokens[c.lease.Token()]
}

// check waits until all goroutines block, and checks the guarantees of the lock.
func (g *lockTest) check() {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.round++
	if len(g.errors) > 0 {
		g.Fatalf("calls returned %v", g.errors)
	}
	holders := 0
	for _, c := range g.holders {
		ended := c.lease.Context().Err() != nil
		if !ended && !time.Now().Before(c.lease.ValidUntil()) {
			g.Fatalf("a lease is over since %v, and its context goes on", time.Since(c.lease.ValidUntil()))
		}
		if !ended && !g.isStale(c) {
			holders++
		}
	}
	if holders > 1 {
		g.Fatalf("%d callers hold the key", holders)
	}
	if !g.disrupted && holders == 0 && len(g.waiting) > 0 && !g.hasExpiredHolder() {
		g.Fatalf("%d wait, no caller holds the key, and nothing was disrupted", len(g.waiting))
	}
	g.checkFences()
}

// hasExpiredHolder reports whether a holder has outlived its lease, so that the key is free
// only after its TTL.
func (g *lockTest) hasExpiredHolder() bool {
	return slices.ContainsFunc(g.holders, func(c *caller) bool { return c.lease.Context().Err() != nil })
}

// checkFences checks that each call that was granted in a later round has a higher fencing
// number. Exception: stale leases.
func (g *lockTest) checkFences() {
	var highest int64 // of earlier rounds
	for i, c := range g.served {
		if i > 0 && c.round != g.served[i-1].round {
			for _, before := range g.served[:i] {
				highest = max(highest, before.lease.Fence())
			}
		}
		if !g.isStale(c) && c.lease.Fence() <= highest {
			g.Fatalf("fence %d after %d", c.lease.Fence(), highest)
		}
	}
}

// drain ends all disruptions, and checks that each waiter is served.
func (g *lockTest) drain() {
	for i := range g.table.processes {
		g.table.processes[i].network.restore()
	}
	for range 3 * (len(g.snapshot(&g.waiting)) + 1) {
		for len(g.snapshot(&g.holders)) > 0 {
			g.releaseFirst()
		}
		time.Sleep(ttl)
		g.check()
	}
	if left := g.snapshot(&g.waiting); len(left) > 0 {
		g.Fatalf("%d callers wait for ever", len(left))
	}
}

func (g *lockTest) releaseFirst() {
	g.mu.Lock()
	c := g.holders[0]
	g.holders = g.holders[1:]
	g.mu.Unlock()
	_ = c.lease.Release(context.Background())
	synctest.Wait()
}
