package quorum

import (
	"sync"
	"testing"
	"time"
)

// stallInterval is how often a stall detector runs.
const stallInterval = 20 * time.Millisecond

// stallTolerance is the longest delay of its run that is no stall. A command and its
// reply that are both delayed by this much exceed no timeout: twice ttl/8 is ttl/4.
var stallTolerance = ttl / 8

// A stallDetector detects that the machine did not run this process for a while. The
// process holds the Lockers and the proxies, so all nodes seem to fail then. It is safe
// for concurrent use.
type stallDetector struct {
	mu        sync.Mutex
	lastRun   time.Time
	lastStall time.Time // the end of the last stall
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
	if now.Sub(d.lastRun) > stallInterval+stallTolerance {
		d.lastStall = now
	}
	d.lastRun = now
}

// stalledSince reports whether a stall ended after that time.
func (d *stallDetector) stalledSince(since time.Time) bool {
	d.run(time.Now()) // the caller may run before the detector's goroutine
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lastStall.After(since)
}

func TestOnlyALongPauseIsAStall(t *testing.T) {
	t.Parallel()
	started := time.Now()
	d := &stallDetector{lastRun: started.Add(-stallInterval - stallTolerance)}
	d.run(started)
	if !d.lastStall.IsZero() {
		t.Error("a pause within the tolerance is a stall")
	}
	d.run(started.Add(stallInterval + stallTolerance + 1))
	if !d.stalledSince(started) {
		t.Error("a stall was not detected")
	}
	if d.stalledSince(d.lastStall) {
		t.Error("a stall before that time counts")
	}
}
