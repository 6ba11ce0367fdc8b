package quorum

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// stallInterval is how often a stall detector runs.
const stallInterval = 20 * time.Millisecond

// stallTolerance is the longest delay of runs, in all, that is no stall. It is half the timeout
// of a command, ttl/4: a command and its reply wait for a processor several times, in this
// process and in a node's server.
var stallTolerance = ttl / 8

// isStall reports whether delays are a stall: they exceed the tolerance and a quarter of the
// time in which they happened. So a call that takes long for another reason is no stall.
func isStall(delays, within time.Duration) bool { return delays > max(stallTolerance, within/4) }

// A stallDetector detects that the machine did not run this process for a while, or again
// and again ran it late. The process holds the Lockers and the proxies, so all nodes seem
// to fail then. It is safe for concurrent use.
type stallDetector struct {
	mu      sync.Mutex
	lastRun time.Time
	delays  []delay // of runs, in their order
}

// A delay is by how much a run of a detector was late.
type delay struct {
	run  time.Time
	late time.Duration
}

// newStallDetector starts a detector, which stops with the test.
func newStallDetector(t *testing.T) *stallDetector {
	t.Helper()
	d := &stallDetector{lastRun: time.Now()}
	stop := make(chan struct{})
	var stopped sync.WaitGroup
	stopped.Go(func() {
		ticker := time.NewTicker(stallInterval)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				d.run(time.Now())
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		stopped.Wait()
	})
	return d
}

func (d *stallDetector) run(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// A ticker keeps its phase: a run that is a little late is followed by one that is as early.
	if late := now.Sub(d.lastRun) - stallInterval; late > stallInterval/2 {
		d.delays = append(d.delays, delay{now, late})
	}
	d.lastRun = now
}

func (d *stallDetector) stalledSince(since time.Time) bool {
	d.run(time.Now()) // the caller may run before the detector's goroutine
	return isStall(d.lateSince(since), time.Since(since))
}

// lateSince returns by how much the runs after that time were late, in all. Small delays do not
// count.
func (d *stallDetector) lateSince(since time.Time) (late time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range slices.Backward(d.delays) {
		if !one.run.After(since) {
			break
		}
		late += one.late
	}
	return late
}
