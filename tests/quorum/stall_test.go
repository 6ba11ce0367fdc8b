package quorum

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// stallInterval is how often a stall detector runs.
const stallInterval = 20 * time.Millisecond

// stallTolerance is the longest delay of its runs, in all, that is no stall. It is half the
// timeout of a command, ttl/4: a command and its reply wait for a processor several times,
// in this process and in a node's server.
var stallTolerance = ttl / 8

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

// run notes that the process runs now.
func (d *stallDetector) run(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if late := now.Sub(d.lastRun) - stallInterval; late > 0 {
		d.delays = append(d.delays, delay{now, late})
	}
	d.lastRun = now
}

// stalledSince reports whether the runs after that time were late by more than the
// tolerance in all.
func (d *stallDetector) stalledSince(since time.Time) bool {
	d.run(time.Now()) // the caller may run before the detector's goroutine
	return d.lateSince(since) > stallTolerance
}

// lateSince returns by how much the runs after that time were late, in all.
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

func TestDelaysAddUp(t *testing.T) {
	t.Parallel()
	first := time.Now()
	d := &stallDetector{lastRun: first}
	second := first.Add(stallInterval + time.Second)
	d.run(second)
	third := second.Add(stallInterval)
	d.run(third)
	fourth := third.Add(stallInterval + 2*time.Second)
	d.run(fourth)
	for since, want := range map[time.Time]time.Duration{
		first: 3 * time.Second, second: 2 * time.Second, third: 2 * time.Second, fourth: 0,
	} {
		if got := d.lateSince(since); got != want {
			t.Errorf("late by %v after %v, want %v", got, since.Sub(first), want)
		}
	}
}
