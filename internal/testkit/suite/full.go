package suite

import (
	"cmp"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
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

// Duration returns the duration in an environment variable, such as "2m", or the usual one if the
// variable is not set. A wrong value fails the test.
func Duration(tb testing.TB, variable string, usual time.Duration) time.Duration {
	tb.Helper()
	d, err := time.ParseDuration(cmp.Or(os.Getenv(variable), usual.String()))
	if err != nil {
		tb.Fatalf("%s: %v", variable, err)
	}
	return d
}

// Count returns the positive number in an environment variable, or the usual one if the variable is
// not set. A wrong value fails the test.
func Count(tb testing.TB, variable string, usual int) int {
	tb.Helper()
	text := cmp.Or(os.Getenv(variable), strconv.Itoa(usual))
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		tb.Fatalf("%s: %q is no positive number", variable, text)
	}
	return n
}

// RequireEnv is an environment variable that turns a missing program into a failure. CI sets it.
const RequireEnv = "REQLOCK_REQUIRE_REDIS"

// SkipOrFail skips a test because the machine lacks a program or a feature of a program. The text
// states which. If REQLOCK_REQUIRE_REDIS is set, SkipOrFail fails the test instead, so that CI
// cannot pass without the program.
func SkipOrFail(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if os.Getenv(RequireEnv) != "" {
		tb.Fatalf(RequireEnv+" is set: "+format, args...)
	}
	tb.Skipf(format, args...)
}
