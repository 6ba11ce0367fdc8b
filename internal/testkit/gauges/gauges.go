// Package gauges counts the leases and the waiting requests of a Locker by its events, as
// instruments of metrics do, and checks that the counts balance.
package gauges

import (
	"fmt"
	"sync"

	"github.com/reqlock/reqlock/core"
)

// Gauges are the counts of a Locker. Observe is its observer. All methods are safe for
// concurrent use.
type Gauges struct {
	mu              sync.Mutex
	active, waiting map[string]int // by name
	totals          map[core.EventKind]int
	ended           int    // how many waits have ended
	wrong           string // what was wrong with an event
}

// Observe counts an event.
func (g *Gauges) Observe(e core.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.active == nil {
		g.active, g.waiting, g.totals = map[string]int{}, map[string]int{}, map[core.EventKind]int{}
	}
	g.totals[e.Kind]++
	name := fmt.Sprint(e.Name, " ", e.Idempotent)
	switch e.Kind {
	case core.Acquired:
		g.active[name]++
	case core.Released:
		g.active[name]--
	case core.Waiting:
		g.waiting[name]++
	}
	if e.Queued {
		g.ended++
		g.waiting[name]--
		if e.Kind != core.Acquired && e.Kind != core.Refused && e.Kind != core.Replayed {
			g.wrong = fmt.Sprintf("%v ends a wait", e.Kind)
		}
	}
	if g.active[name] < 0 || g.waiting[name] < 0 {
		g.wrong = fmt.Sprintf("after %v, %d leases of %q are active and %d requests wait", e.Kind, g.active[name], name, g.waiting[name])
	}
}

// Count returns how many events of a kind there were.
func (g *Gauges) Count(kind core.EventKind) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.totals[kind]
}

// Unbalanced returns what is wrong with the gauges of a Locker without holders and waiters, or
// "": each gauge is back at zero, and none was below zero.
func (g *Gauges) Unbalanced() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, n := range g.active {
		if n != 0 {
			return fmt.Sprintf("%d leases of %q are active: %v", n, name, g.totals)
		}
	}
	for name, n := range g.waiting {
		if n != 0 {
			return fmt.Sprintf("%d requests of %q wait: %v", n, name, g.totals)
		}
	}
	switch {
	case g.totals[core.Waiting] != g.ended:
		return fmt.Sprintf("%d waits began and %d ended", g.totals[core.Waiting], g.ended)
	case g.totals[core.Acquired] != g.totals[core.Released]:
		return fmt.Sprintf("%d leases were acquired and %d released", g.totals[core.Acquired], g.totals[core.Released])
	}
	return g.wrong
}
