package crash

import (
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// patience is how long anything may take that is bound to happen. It is far
// beyond what it takes on a busy machine.
const patience = 30 * time.Second

// await polls until the condition holds.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Errorf("still not so: %s", what) // from any goroutine
			return
		}
	}
}

// raced reports whether the race detector is on, which makes all about ten
// times slower.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
