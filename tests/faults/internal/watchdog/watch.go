// Package watchdog notices when the machine does not let a process run. Delays at such
// times are not caused by the lock.
package watchdog

import (
	"sync"
	"time"

	"github.com/reqlock/reqlock/tests/internal/clock"
)

// interval is how often a watch reads the clock.
const interval = 10 * time.Millisecond

// Watch watches this process until stop is called. Stop returns when the watch has ended.
// If the time between two readings of the clock exceeds the interval by more than the
// tolerance, it is a stall: Watch calls report with its bounds, always on the same other
// goroutine.
func Watch(tolerance time.Duration, report func(from, to int64)) (stop func()) {
	end := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		last := clock.Now()
		for {
			select {
			case <-end:
				return
			case <-ticker.C:
			}
			now := clock.Now()
			if isStall(last, now, tolerance) {
				report(last, now)
			}
			last = now
		}
	})
	return sync.OnceFunc(func() {
		close(end)
		done.Wait()
	})
}

// isStall reports whether the time between two readings of the clock was a stall.
func isStall(last, now int64, tolerance time.Duration) bool {
	return now-last > (interval + tolerance).Nanoseconds()
}
