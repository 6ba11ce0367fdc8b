package adaptertest

import (
	"math"
	"testing"

	"github.com/reqlock/reqlock/core"
)

// mostAllocations is how many allocations an adapter may add to those of the bare handler and of the
// lock alone.
const mostAllocations = 10

// CheckAllocations fails the test if a handler under a lock of the Locker allocates too much. locked is
// the handler behind the adapter, and serve runs a handler. No test may run in parallel.
func CheckAllocations[H any](t *testing.T, locks *core.Locker, handler, locked H, serve func(H) error) {
	t.Helper()
	of := func(h H) float64 {
		return least(func() {
			if err := serve(h); err != nil {
				t.Error(err)
			}
		})
	}
	bare, lock := of(handler), least(func() { IsFree(t, locks) })
	if own := of(locked) - bare - lock; own > mostAllocations {
		t.Errorf("%.2f allocations over the bare handler (%.2f) and the lock alone (%.2f), want at most %d", own, bare, lock, mostAllocations)
	}
}

// least returns the allocations of a function, on average. Other goroutines only add to them.
func least(run func()) float64 {
	const runs = 100
	n := math.Inf(1)
	for range 5 {
		n = min(n, testing.AllocsPerRun(1, func() { // which rounds down
			for range runs {
				run()
			}
		}))
	}
	return n / runs
}
