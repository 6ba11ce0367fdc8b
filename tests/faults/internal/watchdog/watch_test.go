package watchdog

import (
	"sync/atomic"
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

// A delay of another process is a stall from its beginning, and only once.
func TestDelayOfAnotherProcessIsStall(t *testing.T) {
	const tolerance, delay = time.Minute, time.Hour
	var total atomic.Int64
	type stall struct{ from, to int64 }
	stalls, read := make(chan stall, 10), make(chan struct{})
	stop := Watch(tolerance, func(from, to int64) { stalls <- stall{from, to} }, func() time.Duration {
		select {
		case read <- struct{}{}:
		default:
		}
		return time.Duration(total.Load())
	})
	suite.Receive(t, "the first reading", read)
	total.Store(int64(tolerance))
	for range 3 {
		suite.Receive(t, "a reading", read)
	}
	total.Add(int64(delay))
	if s := suite.Receive(t, "a stall", stalls); s.to-s.from != delay.Nanoseconds() {
		t.Errorf("a stall of %v", time.Duration(s.to-s.from))
	}
	for range 3 {
		suite.Receive(t, "a reading", read)
	}
	stop()
	if len(stalls) != 0 {
		t.Errorf("%d stalls more", len(stalls))
	}
}
