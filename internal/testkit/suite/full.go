package suite

import (
	"os"
	"sync/atomic"
	"testing"
)

// fullEnv selects the full tier.
const fullEnv = "REQLOCK_FULL"

// leftOut counts the tests that the fast tier has skipped.
var leftOut atomic.Int64

// IsFull reports whether the full tier runs: whether REQLOCK_FULL is set.
func IsFull() bool { return os.Getenv(fullEnv) != "" }

// Full skips a test in the fast tier. The reason says why the test is long by nature: it
// is a soak, crashes at random, or plays all combinations.
func Full(tb testing.TB, reason string) {
	tb.Helper()
	if !IsFull() {
		leftOut.Add(1)
		tb.Skipf("left out, since it %s: %s=1 runs it", reason, fullEnv)
	}
}

// Size returns n in the full tier without the race detector, and few otherwise: for
// loops whose length is a matter of thoroughness.
func Size(few, n int) int {
	if IsFull() && !Race {
		return n
	}
	return few
}
