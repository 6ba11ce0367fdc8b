package engine

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// fencedSharing returns a request for a shared lease with a fencing number.
func fencedSharing(limit store.Limit) Request {
	r := sharing(limit, WaitForever)
	r.Fencing = true
	return r
}

// All leases of a phase have one number, also those that pass, and that of a process which
// asked without Fencing before. The numbers of writers are between those of phases.
func TestSharedLeasesOfPhaseHaveOneFence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		var mu sync.Mutex
		last := int64(0)
		for range 3 {
			plain := hold(t, p.engines[0], sharing(3, 0))
			a, b := hold(t, p.engines[0], fencedSharing(3)), hold(t, p.engines[1], fencedSharing(3))
			number := a.Fence()
			if plain.Fence() != 0 || number <= last || b.Fence() != number {
				t.Errorf("numbers %d, %d, %d after %d", plain.Fence(), number, b.Fence(), last)
			}
			for range 10 {
				waiting(t, p.engines[0], fencedSharing(3), func(h *Hold) {
					mu.Lock()
					defer mu.Unlock()
					if h.Fence() != number {
						t.Errorf("a pass has the number %d, want %d", h.Fence(), number)
					}
				})
			}
			release(t, plain) // its lease has no number yet
			synctest.Wait()
			release(t, a)
			release(t, b)
			time.Sleep(time.Second)
			writer := hold(t, p.engines[1], fencedSharing(store.Exclusive))
			if writer.Fence() <= number {
				t.Errorf("the writer has the number %d after %d", writer.Fence(), number)
			}
			last = writer.Fence()
			release(t, writer)
		}
		if got := p.stores[0].count("renew"); got != 3 { // each for the first pass of a lease without a number
			t.Errorf("%d renewals", got)
		}
		p.checkIdle(t)
	})
}

// A release ends a phase and begins the next one with the same process. Its number is drawn
// from the store, since other processes may share the new phase.
func TestKeptSharedLeaseDrawsNewFence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		r, more := fencedSharing(2), fencedSharing(1)
		first, second := hold(t, p.engines[0], r), hold(t, p.engines[0], r)
		var kept *Hold
		go func() { kept = hold(t, p.engines[0], r) }()
		time.Sleep(time.Second) // the budget is spent
		release(t, second)
		synctest.Wait()
		other := hold(t, p.engines[1], sharing(3, 0)) // in the phase, without a number
		if kept.Fence() != first.Fence() {
			t.Errorf("number %d, want %d", kept.Fence(), first.Fence())
		}
		release(t, first)
		release(t, kept)
		release(t, other)
		p.checkIdle(t)

		h := hold(t, p.engines[0], r)
		old := h.Fence()
		release(t, h)
		h = hold(t, p.engines[0], more)
		go func() { kept = hold(t, p.engines[0], more) }()
		time.Sleep(time.Second)
		held := h.Fence()
		release(t, h)
		synctest.Wait()
		if held <= old || kept.Fence() <= held {
			t.Errorf("the numbers %d, %d, %d do not rise from phase to phase", old, held, kept.Fence())
		}
		release(t, kept)
		p.checkIdle(t)
	})
}

// A single permit with Fencing does not pass within the process: each holder gets a number of
// its own from the store.
func TestSinglePermitWithFenceDoesNotPass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		r := fencedSharing(1)
		h := hold(t, p.engines[0], r)
		last := h.Fence()
		for range 5 {
			waiting(t, p.engines[0], r, func(h *Hold) {
				if h.Fence() <= last {
					t.Errorf("the number %d after %d", h.Fence(), last)
				}
				last = h.Fence()
			})
		}
		release(t, h)
		time.Sleep(time.Second)
		p.checkIdle(t)
	})
}
