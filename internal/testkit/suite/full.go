package suite

import (
	"os"
	"sync/atomic"
	"testing"
)

// fullEnv selects the full tier.
const fullEnv = "REQLOCK_FULL"

// skipped counts the tests that the fast tier has skipped.
var skipped atomic.Int64

// IsFull reports whether the full tier runs: whether REQLOCK_FULL is set.
func IsFull() bool { return os.Getenv(fullEnv) != "" }

// Full skips a test in the fast tier. The reason is a clause without its subject that states
// why the test is long by nature, such as "crashes processes at random".
func Full(tb testing.TB, reason string) {
	tb.Helper()
	if !IsFull() {
		skipped.Add(1)
		tb.Skipf("skipped, because it %s: %s=1 runs it", reason, fullEnv)
	}
}

// Size returns n in the full tier without the race detector, and few otherwise. It is for
// loops that are more thorough if they are longer.
func Size(few, n int) int {
	if IsFull() && !Race {
		return n
	}
	return few
}
