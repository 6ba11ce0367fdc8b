package watchdog

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// A stall excuses failures, so a shorter gap must not be one.
func TestOnlyLongGapIsStall(t *testing.T) {
	const tolerance = 100 * time.Millisecond
	longest := (interval + tolerance).Nanoseconds()
	if isStall(5, 5+longest, tolerance) || !isStall(5, 6+longest, tolerance) {
		t.Error("the bound of a stall is not the interval and the tolerance")
	}
}
