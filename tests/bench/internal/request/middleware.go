package request

import (
	"context"
	"errors"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
	"github.com/reqlock/reqlock/tests/bench/internal/stack"
	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// A Middleware is a job: it serves requests without a network, and compares a locked
// handler with the bare handler and with the lock alone. It calls the three in turn, so
// that other load of the machine affects all of them.
type Middleware struct {
	Framework string
	Addr      string // of Redis
	Window    time.Duration

	stack        *stack.Stack
	bare, locked testService
}

// A MiddlewareOutcome is the result of a Middleware: median microseconds and mean
// allocations of one call.
type MiddlewareOutcome struct {
	Bare, Lock, Locked                                  float64
	BareAllocations, LockAllocations, LockedAllocations float64
}

// AddedMicros returns what the middleware adds to handler and lock.
func (o MiddlewareOutcome) AddedMicros() float64 { return o.Locked - o.Lock - o.Bare }

// AddedAllocations returns what the middleware adds to handler and lock.
func (o MiddlewareOutcome) AddedAllocations() float64 {
	return o.LockedAllocations - o.LockAllocations - o.BareAllocations
}

// Kind names the job.
func (*Middleware) Kind() string { return "middleware" }

// Prepare makes the handlers.
func (m *Middleware) Prepare(ctx context.Context) (err error) {
	if m.stack, err = stack.Open(m.Addr, new(wire.Counter)); err != nil {
		return err
	}
	if m.bare, err = open(ctx, m.Framework, nil); err != nil {
		return err
	}
	m.locked, err = open(ctx, m.Framework, m.stack.Locks)
	return err
}

const (
	middlewareID = "42"
	// allocationCalls is the number of calls for the mean of the allocations.
	allocationCalls = 200
)

// Run serves until the window has passed, and returns a MiddlewareOutcome.
func (m *Middleware) Run(ctx context.Context, start time.Time) (any, error) {
	bare, err := m.bare.direct(ctx, middlewareID)
	if err != nil {
		return nil, err
	}
	locked, err := m.locked.direct(ctx, middlewareID)
	if err != nil {
		return nil, err
	}
	lock := func() error {
		lease, err := m.stack.Locks.TryLock(ctx, middlewareID)
		if err != nil {
			return err
		}
		return lease.Release(ctx)
	}

	calls := []func() error{bare, lock, locked}
	var outcome MiddlewareOutcome
	for i, into := range []*float64{&outcome.BareAllocations, &outcome.LockAllocations, &outcome.LockedAllocations} {
		if *into, err = allocations(calls[i]); err != nil { // the first calls warm up, too
			return nil, err
		}
	}
	time.Sleep(time.Until(start))
	medians, err := inTurns(calls, m.Window)
	if err != nil {
		return nil, err
	}
	outcome.Bare, outcome.Lock, outcome.Locked = medians[0], medians[1], medians[2]
	return &outcome, nil
}

// inTurns calls the functions in turn until the window has passed, and returns the median
// of each in microseconds.
func inTurns(calls []func() error, window time.Duration) ([]float64, error) {
	times := make([][]float64, len(calls))
	for deadline := time.Now().Add(window); time.Now().Before(deadline); {
		for i, call := range calls {
			began := time.Now()
			if err := call(); err != nil {
				return nil, err
			}
			times[i] = append(times[i], float64(time.Since(began))/float64(time.Microsecond))
		}
	}
	medians := make([]float64, len(calls))
	for i := range times {
		medians[i] = measure.Median(times[i])
	}
	return medians, nil
}

// allocations returns the number of allocations of a call.
func allocations(call func() error) (float64, error) {
	for range warmUps {
		if err := call(); err != nil {
			return 0, err
		}
	}
	before, err := measure.Used()
	if err != nil {
		return 0, err
	}
	for range allocationCalls {
		if err := call(); err != nil {
			return 0, err
		}
	}
	after, err := measure.Used()
	return float64(after.Since(before).Allocations) / allocationCalls, err
}

// Close ends the connections.
func (m *Middleware) Close() error {
	var errs []error
	for _, s := range []testService{m.bare, m.locked} {
		if s != nil {
			errs = append(errs, s.close())
		}
	}
	return errors.Join(append(errs, m.stack.Close())...)
}
