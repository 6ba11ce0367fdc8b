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

// A lockGame is about one key.
type lockGame struct {
	*rapid.T
	table *table

	mu      sync.Mutex
	waiting []*caller // who have not returned
	holders []*caller // who were granted, and did not release
	round   int
	losses  int             // of data, so far
	ghosts  map[string]bool // tokens of leases that Redis may have forgotten
	served  []*caller       // all who were granted, in all rounds
	broken  bool            // something was, ever
	wrong   []error         // what calls returned that they should not
}

// A caller is somebody who asks for the key.
type caller struct {
	cancel context.CancelFunc
	losses int // how many there had been when it asked
	round  int // in which it was granted
	lease  *core.Lease
}

func TestLocks(t *testing.T) {
	for name, renewal := range map[string]bool{"renewed": true, "not renewed": false} {
		t.Run(name, func(t *testing.T) { play(t, playLocks, core.WithRenewal(renewal)) })
	}
}

func playLocks(rt *rapid.T, table *table) {
	g := &lockGame{T: rt, table: table, ghosts: map[string]bool{}}
	rt.Repeat(map[string]func(*rapid.T){
		"lock":    func(*rapid.T) { g.ask(false) },
		"try":     func(*rapid.T) { g.ask(true) },
		"extend":  func(*rapid.T) { g.extend() },
		"release": func(*rapid.T) { g.release() },
		"cancel":  func(*rapid.T) { g.cancel() },
		"advance": func(*rapid.T) {
			time.Sleep(time.Duration(rapid.IntRange(1, 12_000).Draw(rt, "ms")) * time.Millisecond)
		},
		"lose a reply": func(*rapid.T) { g.breaks(); table.sitter(rt).network.lose() },
		"cut":          func(*rapid.T) { g.breaks(); table.sitter(rt).network.cut() },
		"mend":         func(*rapid.T) { table.sitter(rt).network.mend() },
		"restart":      func(*rapid.T) { g.lose(table.server.FlushAll) },
		"delete":       func(*rapid.T) { g.lose(func() { table.server.Del("reqlock:k") }) },
		"":             func(*rapid.T) { g.look() },
	})
	g.drain()
}

// ask lets somebody ask for the key, who may wait, or not.
func (g *lockGame) ask(try bool) {
	if len(g.now(&g.waiting)) >= 5 {
		g.Skip("enough wait")
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &caller{cancel: cancel, losses: g.losses}
	p := g.table.sitter(g.T)
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
		case errors.Is(err, core.ErrUnavailable) && g.broken:
		default:
			g.wrong = append(g.wrong, err)
		}
	}()
}

// now returns those who are on a list at this moment.
func (g *lockGame) now(list *[]*caller) []*caller {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(*list)
}

// breaks notes that something goes wrong from here on.
func (g *lockGame) breaks() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = true
}

// any draws one of several callers.
func (g *lockGame) any(of []*caller) *caller {
	if len(of) == 0 {
		g.Skip("nobody")
	}
	return of[rapid.IntRange(0, len(of)-1).Draw(g.T, "who")]
}

func (g *lockGame) extend() {
	lease := g.any(g.now(&g.holders)).lease
	err := lease.Extend(context.Background(), ttl)
	ended := lease.Context().Err() != nil
	if err != nil && !g.broken && !ended {
		g.Fatalf("extend: %v", err)
	}
	if err == nil && time.Until(lease.ValidUntil()) < ttl*9/10 {
		g.Fatalf("extended, and valid only for %v", time.Until(lease.ValidUntil()))
	}
}

func (g *lockGame) release() {
	c := g.any(g.now(&g.holders))
	whole := c.lease.Context().Err() == nil
	err := c.lease.Release(context.Background())
	if err != nil && whole && !g.broken {
		g.Fatalf("release: %v", err)
	}
	if c.lease.Context().Err() == nil {
		g.Fatal("released, and its context goes on")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holders = slices.DeleteFunc(g.holders, func(one *caller) bool { return one == c })
}

func (g *lockGame) cancel() { g.any(g.now(&g.waiting)).cancel() }

// lose makes Redis forget. Fences come from its clock then, which has to have
// moved on: in a bubble it does not by itself.
func (g *lockGame) lose(forget func()) {
	time.Sleep(time.Second)
	synctest.Wait()
	g.breaks()
	g.losses++
	forget()
	for _, c := range g.now(&g.holders) {
		g.ghosts[c.lease.Token()] = true
	}
}

// ghost reports whether Redis may have forgotten the lease, or given it before
// it forgot all others.
func (g *lockGame) ghost(c *caller) bool { return c.losses < g.losses || g.ghosts[c.lease.Token()] }

// look waits until nothing moves, and looks at what is so.
func (g *lockGame) look() {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.round++
	if len(g.wrong) > 0 {
		g.Fatalf("calls returned %v", g.wrong)
	}
	believers := 0
	for _, c := range g.holders {
		ended := c.lease.Context().Err() != nil
		if !ended && !time.Now().Before(c.lease.ValidUntil()) {
			g.Fatalf("a lease is over since %v, and its context goes on", time.Since(c.lease.ValidUntil()))
		}
		if !ended && !g.ghost(c) {
			believers++
		}
	}
	if believers > 1 {
		g.Fatalf("%d believe that they hold the key", believers)
	}
	if !g.broken && believers == 0 && len(g.waiting) > 0 && !g.abandoned() {
		g.Fatalf("%d wait, nobody holds the key, and nothing was ever broken", len(g.waiting))
	}
	g.rise()
}

// abandoned reports whether somebody outlived a lease, whose key waits for its
// TTL.
func (g *lockGame) abandoned() bool {
	return slices.ContainsFunc(g.holders, func(c *caller) bool { return c.lease.Context().Err() != nil })
}

// rise looks at the fences: whoever was granted the key in a later round has a
// greater one, but for ghosts.
func (g *lockGame) rise() {
	var highest int64 // of earlier rounds
	for i, c := range g.served {
		if i > 0 && c.round != g.served[i-1].round {
			for _, before := range g.served[:i] {
				highest = max(highest, before.lease.Fence())
			}
		}
		if !g.ghost(c) && c.lease.Fence() <= highest {
			g.Fatalf("fence %d after %d", c.lease.Fence(), highest)
		}
	}
}

// drain ends all trouble, and finds who is never served.
func (g *lockGame) drain() {
	for i := range g.table.processes {
		g.table.processes[i].network.mend()
	}
	for range 3 * (len(g.now(&g.waiting)) + 1) {
		for len(g.now(&g.holders)) > 0 {
			g.releaseFirst()
		}
		time.Sleep(ttl)
		g.look()
	}
	if left := g.now(&g.waiting); len(left) > 0 {
		g.Fatalf("%d wait for ever", len(left))
	}
}

func (g *lockGame) releaseFirst() {
	g.mu.Lock()
	c := g.holders[0]
	g.holders = g.holders[1:]
	g.mu.Unlock()
	_ = c.lease.Release(context.Background())
	synctest.Wait()
}
