package load

import (
	"context"
	"time"
)

// runLoop lets the goroutines take the lock, release it and take it again at once, until the
// window has passed. Waiters at that time are still served.
func (j *Job) runLoop(ctx context.Context, start time.Time, workers []*worker) *Outcome {
	deadline := start.Add(j.Window)
	gate := make(chan struct{})
	var before costs
	go func() {
		defer close(gate)
		time.Sleep(time.Until(start))
		before = j.costs()
	}()

	j.each(func(g int) {
		// A context of its own, as each request has. Goroutines with a common context would
		// contend for its mutex.
		ctx, cancel := context.WithDeadline(ctx, deadline.Add(drainTime))
		defer cancel()
		<-gate
		for { // at least once
			if !workers[g].turn(ctx, time.Now(), deadline) || !time.Now().Before(deadline) {
				return
			}
		}
	})
	return j.outcome(before, workers)
}

// A Round is one round of a burst.
type Round struct {
	Start     time.Time // when the round began
	LastGrant time.Time // when the last goroutine of this process got its lock
}

// runBurst lets all goroutines request one key at the same time, and take it once. Then the next
// round begins.
func (j *Job) runBurst(ctx context.Context, start time.Time, workers []*worker) (*Outcome, error) {
	time.Sleep(time.Until(start))
	before, rounds := j.costs(), make([]Round, j.Rounds)
	for i := range rounds {
		var err error
		if rounds[i], err = j.round(ctx, workers, i+1); err != nil {
			return nil, err
		}
	}
	outcome := j.outcome(before, workers)
	outcome.Rounds = rounds
	return outcome, nil
}

// round runs one round, which begins in all processes at the same time.
func (j *Job) round(ctx context.Context, workers []*worker, number int) (Round, error) {
	var (
		gate   = make(chan struct{})
		start  time.Time
		missed error
	)
	go func() {
		defer close(gate)
		start, missed = j.memory.Await(ctx, j.Processes, number)
	}()
	j.each(func(g int) {
		<-gate
		if missed != nil {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, drainTime)
		defer cancel()
		began := time.Now()
		workers[g].turn(ctx, began, began.Add(drainTime))
	})
	r := Round{Start: start}
	for _, w := range workers {
		if w.lastGrant.After(r.LastGrant) {
			r.LastGrant = w.lastGrant
		}
	}
	return r, missed
}
