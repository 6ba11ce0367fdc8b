package waiting

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// A stream takes this many turns at most, which is more than it can take until the others are
// done, if they are served. So a waiter that a stream starves is found by its wait.
const streamTurns = 6000

// In each process fifteen goroutines take leases of one kind without a pause, and one
// goroutine waits for a lease of the other kind, again and again.
func TestNobodyStarvesBehindAStream(t *testing.T) {
	for _, test := range []struct {
		name          string
		stream, other int // limits
	}{
		{"writers behind readers", history.Unlimited, 0},
		{"readers behind writers", 0, history.Unlimited},
		{"writers behind permits", 3, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.stream > 0 {
				suite.Full(t, "repeats the test with permits")
			}
			s := scenario{
				orders: newOrders(10*time.Second, 500*time.Millisecond, test.stream <= 0, streamTurns),
				checks: basicChecks().withWaits(), meanwhile: (*workers).stopStream,
			}
			if !s.Fencing {
				s.checks.without("fences")
			}
			s.Size.Turns = streamTurns
			s.Limit, s.Stream = test.other, stream{Goroutines: s.Size.Goroutines - 1, Limit: test.stream, Meanwhile: suite.Size(5, 60)}
			_, h := s.run(t)
			for limit, some := range h.ByLimit() {
				mean, longest := some.Waits()
				t.Logf("limit %d: %d turns, mean wait %v, longest wait %v", limit, len(some), mean, longest)
			}
			if got, want := len(h.ByLimit()[test.other]), processCount*s.Stream.Meanwhile; got != want {
				t.Errorf("%d of %d turns beside the stream", got, want)
			}
		})
	}
}

func TestProcessesSharePermits(t *testing.T) {
	s := scenario{
		orders: newOrders(10*time.Second, 500*time.Millisecond, false, someTurns),
		checks: basicChecks().withWaits().withOrder().without("fences"),
	}
	s.Limit = 3
	w, h := s.run(t)
	if h.Lost() > 0 || int64(len(h)) != w.total() {
		t.Errorf("%d leases were lost, and there are %d of %d turns", h.Lost(), len(h), w.total())
	}
}

func (w *workers) stopStream() {
	w.t.Helper()
	w.await("the turns beside the stream", func() bool {
		for p := range processCount {
			for g := w.orders.Stream.Goroutines; g < w.orders.Size.Goroutines; g++ {
				if w.table.turn(w.table.id(p, g, w.orders.Stream.Meanwhile-1)).ended.Load() == 0 {
					return false
				}
			}
		}
		return true
	})
	w.table.head.stop.Store(1)
}
