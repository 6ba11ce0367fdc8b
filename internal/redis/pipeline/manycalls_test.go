package pipeline

import (
	"fmt"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// A busyLane has a batch in flight, and calls of different bounds that wait behind the batch.
type busyLane struct {
	lane
	next batch
}

func newBusyLane(tb testing.TB, calls int) *busyLane {
	tb.Helper()
	l := &busyLane{lane: lane{width: Width, inFlight: &batch{}}}
	for i := range calls {
		c := &Call{}
		c.Begin(silent{}, time.Hour+time.Duration(i%7)*time.Minute, 0, false)
		l.do(c)
	}
	tb.Cleanup(func() { l.timer.Stop() })
	return l
}

// turn settles the calls of the next batch, sends as many, and checks the deadlines.
func (l *busyLane) turn() {
	l.mu.Lock()
	l.fill(&l.next)
	for _, s := range l.next.sends {
		s.call.settle(Reply{})
		l.calls.remove(s.call)
	}
	l.mu.Unlock()
	for _, s := range l.next.sends {
		c := s.call // Begin empties s
		c.Begin(silent{}, c.deadline.Sub(c.Begun), 0, false)
		l.do(c)
	}
	l.next.reset()
	l.checkDeadlines()
}

// A silent operation ignores its replies.
type silent struct{ Operation }

func (silent) Command(int) command.Command { return nil }

// A batch costs the same however many calls wait in the lane.
func BenchmarkBusyLane(b *testing.B) {
	for _, calls := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint("calls=", calls), func(b *testing.B) {
			l := newBusyLane(b, calls)
			b.ReportAllocs()
			for b.Loop() {
				l.turn()
			}
		})
	}
}

// The queue of a lane does not grow while as many calls come as leave.
func TestQueueOfBusyLaneStaysSmall(t *testing.T) {
	t.Parallel()
	const calls = 1000
	l := newBusyLane(t, calls)
	for range 200 {
		l.turn()
	}
	if cap(l.queue) > 4*calls {
		t.Errorf("the queue of %d calls has room for %d", calls, cap(l.queue))
	}
}
