package waiting

import (
	"runtime/debug"
	"slices"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// raced reports whether the race detector is on, which makes all about ten
// times slower.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// fewer returns n, or less of it where the tests have to be short.
func fewer(n, short int) int {
	if raced() || testing.Short() {
		return short
	}
	return n
}
