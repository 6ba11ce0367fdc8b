package growth

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/bench/internal/measure"
	"github.com/reqlock/reqlock/tests/bench/internal/stack"
	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// A Waiters is a job: many goroutines wait for one key, and get it one after the other.
type Waiters struct {
	Addr    string // of Redis
	Waiters int

	stack   *stack.Stack
	waiting atomic.Int64
}

// A WaitersOutcome is the result of a Waiters.
type WaitersOutcome struct {
	Bytes       float64 // memory for each waiter, without its goroutine
	Handoff     float64 // microseconds from one holder to the next
	Allocations float64 // for each wait and hand-off
	Commands    float64 // sent, for each hand-off
}

// Kind names the job.
func (*Waiters) Kind() string { return "waiters" }

const (
	waitersKey = "hot"
	// handoffsAtLeast is the least number of hand-offs to measure. With fewer waiters there
	// are several rounds.
	handoffsAtLeast = 500
	// memoryRounds is the number of rounds in which the memory is measured, which takes
	// long.
	memoryRounds = 3
	// waitersPoll is how often the job checks whether all goroutines wait.
	waitersPoll = time.Millisecond
	// waitersTime bounds a round.
	waitersTime = 60 * time.Second
)

// Prepare connects and warms up.
func (w *Waiters) Prepare(ctx context.Context) (err error) {
	w.stack, err = stack.Open(w.Addr, new(wire.Counter),
		core.WithMaxWaiters(w.Waiters),
		core.WithObserver(func(e core.Event) {
			if e.Kind == core.Waiting {
				w.waiting.Add(1)
			}
		}))
	if err != nil {
		return err
	}
	_, err = w.round(ctx, false)
	return err
}

// Run returns a WaitersOutcome.
func (w *Waiters) Run(ctx context.Context, _ time.Time) (any, error) {
	var (
		bytes              []float64
		took               time.Duration
		used               measure.Usage
		commands, handoffs int64
	)
	for handoffs < handoffsAtLeast {
		measureMemory := len(bytes) < memoryRounds
		r, err := w.round(ctx, measureMemory)
		if err != nil {
			return nil, err
		}
		if measureMemory {
			bytes = append(bytes, float64(r.bytes)/float64(w.Waiters))
		}
		took += r.took
		used.Allocations += r.used.Allocations
		commands += r.commands
		handoffs += int64(w.Waiters)
	}
	each := func(n float64) float64 { return n / float64(handoffs) }
	return &WaitersOutcome{
		Bytes:       measure.Median(bytes),
		Handoff:     each(float64(took) / float64(time.Microsecond)),
		Allocations: each(float64(used.Allocations)),
		Commands:    each(float64(commands)),
	}, nil
}

// A round is the cost of one queue of waiters.
type round struct {
	bytes    int64
	took     time.Duration // from the release of the holder to the release of the last waiter
	used     measure.Usage // from the first wait on
	commands int64
}

// round queues all waiters behind a holder, and then serves them. With measureMemory it
// measures their memory.
func (w *Waiters) round(ctx context.Context, measureMemory bool) (r round, err error) {
	ctx, cancel := context.WithTimeout(ctx, waitersTime)
	defer cancel()
	holder, err := w.stack.Locks.Lock(ctx, waitersKey)
	if err != nil {
		return r, err
	}

	var (
		callers sync.WaitGroup
		parked  sync.WaitGroup
		gate    = make(chan struct{})
		errs    = make([]error, w.Waiters)
	)
	parked.Add(w.Waiters)
	for i := range w.Waiters {
		callers.Go(func() {
			ctx, cancel := context.WithCancel(ctx) // of its own, as each request has one
			defer cancel()
			parked.Done()
			<-gate
			errs[i] = w.turn(ctx)
		})
	}
	parked.Wait()
	var alone int64
	if measureMemory {
		alone = measure.LiveMemory()
	}
	before, err := measure.Used()
	sent := w.stack.Commands.Commands()
	w.waiting.Store(0)
	close(gate)
	if err == nil {
		err = w.awaitQueue(ctx)
	}
	if measureMemory {
		r.bytes = measure.LiveMemory() - alone
	}

	began := time.Now()
	err = errors.Join(err, holder.Release(ctx))
	callers.Wait()
	r.took = time.Since(began)
	after, usedErr := measure.Used()
	r.used = after.Since(before)
	r.commands = w.stack.Commands.Commands() - sent
	return r, errors.Join(cmp.Or(errs...), err, usedErr)
}

// turn waits for the key and releases it.
func (w *Waiters) turn(ctx context.Context) error {
	lease, err := w.stack.Locks.Lock(ctx, waitersKey)
	if err != nil {
		return err
	}
	return lease.Release(ctx)
}

// awaitQueue returns when all goroutines wait.
func (w *Waiters) awaitQueue(ctx context.Context) error {
	ticker := time.NewTicker(waitersPoll)
	defer ticker.Stop()
	for w.waiting.Load() < int64(w.Waiters) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}

// Close ends the connections.
func (w *Waiters) Close() error { return w.stack.Close() }
