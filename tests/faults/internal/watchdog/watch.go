// Package stall notices when the machine gives a process no time: what is late then is
// not the lock's fault.
package watchdog

import (
	"sync"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/clock"
)

// interval is how often a watch looks at the clock.
const interval = 10 * time.Millisecond

// Watch begins to watch this process, until stop is called, which returns when the watch
// has ended. A time without a look at the clock that is longer than the patience, over
// what is normal, is a stall: tell is called with each, one after the other, on another
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

// isStall reports whether the time between two looks was a stall.
func isStall(last, now int64, tolerance time.Duration) bool {
	return now-last > (interval + tolerance).Nanoseconds()
}
