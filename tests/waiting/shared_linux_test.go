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
//
//faults:row 54: across processes
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
				checks: withWaits(basicChecks()), meanwhile: (*workers).stopStream,
			}
			if !s.Fencing {
				delete(s.checks, "fences")
			}
			s.Size.Turns = streamTurns
			s.Limit, s.Stream = test.other, stream{Goroutines: s.Size.Goroutines - 1, Limit: test.stream, Meanwhile: suite.Size(5, 60)}
			_, ts := s.run(t)
			for limit, some := range ts.byLimit() {
				t.Logf("limit %d: %d turns, mean wait %v, longest wait %v", limit, len(some), some.meanWait(), some.longestWait())
			}
			if got, want := len(ts.byLimit()[test.other]), processCount*s.Stream.Meanwhile; got != want {
				t.Errorf("%d of %d turns beside the stream", got, want)
			}
		})
	}
}

//faults:row 52: across processes
func TestProcessesSharePermits(t *testing.T) {
	s := scenario{
		orders: newOrders(10*time.Second, 500*time.Millisecond, false, someTurns),
		checks: withOrder(withWaits(basicChecks())),
	}
	s.Limit = 3
	delete(s.checks, "fences")
	w, ts := s.run(t)
	if ts.lost() > 0 || int64(len(ts)) != w.total() {
		t.Errorf("%d leases were lost, and there are %d of %d turns", ts.lost(), len(ts), w.total())
	}
	t.Logf("mean wait %v, longest wait %v", ts.meanWait(), ts.longestWait())
}

// withWaits adds the check that no wait is too long.
func withWaits(checks map[string]func(turns) []string) map[string]func(turns) []string {
	checks["waits"] = func(ts turns) []string {
		var found []string
		for _, some := range ts.byLimit() {
			found = append(found, some.longWaits(busyMachine, processCount)...)
		}
		return found
	}
	return checks
}

// stopStream stops the stream once all other goroutines have taken their turns.
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
