package exclusion

import (
	"context"
	"time"
)

const (
	// barrierPoll is how often the barrier is checked.
	barrierPoll = 200 * time.Microsecond
	// barrierLead is the time from the last arrival to the start of the round. All
	// processes must notice the start within it.
	barrierLead = 3 * time.Millisecond
)

// Await returns when that many processes have called it for this round, at the start of the
// round, which is the same in all processes. Rounds count from 1. It returns ctx's error if
// ctx ends before.
func (m *Memory) Await(ctx context.Context, processes, round int) (time.Time, error) {
	if m.arrived.Add(1) == int64(processes)*int64(round) {
		m.start.Store(time.Now().Add(barrierLead).UnixNano())
		m.round.Store(int64(round))
	}
	for m.round.Load() < int64(round) {
		if err := pause(ctx, barrierPoll); err != nil {
			return time.Time{}, err
		}
	}
	start := time.Unix(0, m.start.Load())
	return start, pause(ctx, time.Until(start))
}

// pause returns after d, or with ctx's error if ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
