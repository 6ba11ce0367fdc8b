package shared

import (
	"context"
	"time"
)

const (
	// barrierPoll is the pause between two looks at the barrier.
	barrierPoll = 200 * time.Microsecond
	// barrierLead is the time from the last arrival to the beginning of the
	// round, in which all processes see it.
	barrierLead = 3 * time.Millisecond
)

// Await returns when so many processes have called it for this round, counted
// from 1, at the moment that all of them begin it. It returns early with ctx's
// error if ctx ends.
func (m *Memory) Await(ctx context.Context, processes, round int) (time.Time, error) {
	if m.arrived.Add(1) == int64(processes)*int64(round) {
		m.opening.Store(time.Now().Add(barrierLead).UnixNano())
		m.round.Store(int64(round))
	}
	for m.round.Load() < int64(round) {
		if err := pause(ctx, barrierPoll); err != nil {
			return time.Time{}, err
		}
	}
	opening := time.Unix(0, m.opening.Load())
	return opening, pause(ctx, time.Until(opening))
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
