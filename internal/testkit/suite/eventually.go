package suite

import (
	"testing"
	"time"
)

const (
	// patience is how long a condition may take that is bound to hold. It is never the
	// duration of a test that passes, so it allows for a machine that is very busy.
	patience = 60 * time.Second
	// interval is how often a condition is asked.
	interval = time.Millisecond
)

// Eventually returns as soon as the condition holds. It fails the test, with what was
// awaited, if the condition does not hold within a minute. The condition is called on
// the goroutine of the caller, which is that of the test; it may be a bubble's.
func Eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	for begun := time.Now(); !condition(); time.Sleep(interval) {
		if time.Since(begun) > patience {
			tb.Fatalf("after %v, still not: %s", patience, what)
		}
	}
}
