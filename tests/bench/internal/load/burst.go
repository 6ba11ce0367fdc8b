package load

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
)

// A Burst is a job whose goroutines all request one key at the same time, and take it once.
// Then the next round begins.
type Burst struct {
	Workers
	Repeat int // number of rounds
}

// Kind names the job.
func (*Burst) Kind() string { return "burst" }

// Run runs all rounds and returns an Outcome.
func (b *Burst) Run(ctx context.Context, start time.Time) (any, error) {
	workers := make([]*worker, b.Goroutines)
	for g := range workers {
		workers[g] = b.worker(g, hotKey)
	}
	time.Sleep(time.Until(start))
	costs, err := b.startUsage()
	if err != nil {
		return nil, err
	}
	outcome := &Outcome{Waits: measure.NewHistogram()}
	for round := range b.Repeat {
		r, err := b.round(ctx, workers, round+1)
		if err != nil {
			return nil, err
		}
		outcome.Rounds = append(outcome.Rounds, r)
	}
	err = costs.finish(outcome)
	for _, w := range workers {
		outcome.add(w)
	}
	return outcome, err
}

// round runs one round, which begins in all processes at the same time.
func (b *Burst) round(ctx context.Context, workers []*worker, number int) (Round, error) {
	var (
		gate   = make(chan struct{})
		start  time.Time
		missed error
	)
	go func() {
		defer close(gate)
		start, missed = b.memory.Await(ctx, b.Processes, number)
	}()
	b.each(func(g int) {
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
