package suite

import (
	"testing"
	"time"
)

const (
	// patience bounds the wait for a condition that must hold. A test that passes never
	// takes this long, so it has room for a very busy machine.
	patience = 60 * time.Second
	// interval is the pause between two checks of a condition.
	interval = time.Millisecond
)

// Eventually returns as soon as the condition holds. It fails the test, with the text what,
// if the condition does not hold within a minute. Call it on the goroutine of the test, also
// in a bubble of synctest. It calls the condition on the same goroutine.
func Eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	for begun := time.Now(); !condition(); time.Sleep(interval) {
		if time.Since(begun) > patience {
			tb.Fatalf("after %v, still not: %s", patience, what)
		}
	}
}
