package load

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
)

// A Loop is a job whose goroutines take a lock, release it and take it again at once, until
// the window has passed. Waiters at that time are still served.
type Loop struct {
	Workers
	Window  time.Duration
	OwnKeys bool // each goroutine has its own key
}

// Kind names the job.
func (*Loop) Kind() string { return "loop" }

// Run runs the loop and returns an Outcome.
func (l *Loop) Run(ctx context.Context, start time.Time) (any, error) {
	workers := make([]*worker, l.Goroutines)
	for g := range workers {
		key := hotKey
		if l.OwnKeys {
			key = l.ownKey(g)
		}
		workers[g] = l.worker(g, key)
	}
	deadline := start.Add(l.Window)
	gate := make(chan struct{})
	opened := make(chan error, 1)
	var costs usageStart
	go func() {
		time.Sleep(time.Until(start))
		var err error
		costs, err = l.startUsage()
		close(gate)
		opened <- err
	}()

	l.each(func(g int) {
		// A context of its own, as each request has. Goroutines with a common context would
		// contend for its mutex.
		ctx, cancel := context.WithDeadline(ctx, deadline.Add(drainTime))
		defer cancel()
		<-gate
		for began := time.Now(); began.Before(deadline); began = time.Now() {
			if !workers[g].turn(ctx, began, deadline) {
				return
			}
		}
	})
	if err := <-opened; err != nil {
		return nil, err
	}

	outcome := &Outcome{Waits: measure.NewHistogram()}
	err := costs.finish(outcome)
	for _, w := range workers {
		outcome.add(w)
	}
	return outcome, err
}
