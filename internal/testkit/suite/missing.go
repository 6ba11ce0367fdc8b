package suite

import (
	"os"
	"testing"
)

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
