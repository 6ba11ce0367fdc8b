package growth

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/bench/internal/measure"
	"github.com/reqlock/reqlock/tests/bench/internal/stack"
	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

const (
	// parallelLocks is how many goroutines take keys at a time.
	parallelLocks = 64
	// extraLocks is how often one more key is taken while the others are held.
	extraLocks = 500
	// keysTTL is so long that no lease is renewed during a run.
	keysTTL = 10 * time.Minute
	// keysTimeout bounds a command, for busy machines.
	keysTimeout = 10 * time.Second
)

// A Keys is a job. It takes many keys, holds all of them, takes one more, and releases all.
// Then it repeats that with other keys, to measure what the first ones have left behind.
type Keys struct {
	Addr string // of Redis
	Keys int

	stack *stack.Stack
}

// A KeysOutcome is the result of a Keys.
type KeysOutcome struct {
	ClientCPU float64 // microseconds for each key, taken and released
	OneMore   float64 // median microseconds to take and release one more key while all are held
	HeldBytes float64 // memory of this process for each held key
	KeptBytes float64 // memory that stays after all releases
	LostBytes float64 // memory that the second pass has added to that
}

// Kind names the job.
func (*Keys) Kind() string { return "keys" }

// Prepare connects and warms up.
func (k *Keys) Prepare(ctx context.Context) (err error) {
	k.stack, err = stack.Open(k.Addr, new(wire.Counter), core.WithTTL(keysTTL), core.WithCommandTimeout(keysTimeout))
	if err != nil {
		return err
	}
	leases := make([]*core.Lease, parallelLocks)
	if err := k.take(ctx, "warm", leases); err != nil {
		return err
	}
	return release(ctx, leases)
}

// Run returns a KeysOutcome.
func (k *Keys) Run(ctx context.Context, _ time.Time) (any, error) {
	leases := make([]*core.Lease, k.Keys)
	before := measure.LiveMemory()
	first, err := k.pass(ctx, "key", leases)
	if err != nil {
		return nil, err
	}
	second, err := k.pass(ctx, "other", leases)
	if err != nil {
		return nil, err
	}
	return &KeysOutcome{
		ClientCPU: float64(first.cpu) / float64(time.Microsecond) / float64(k.Keys),
		OneMore:   first.oneMore,
		HeldBytes: float64(first.held-before) / float64(k.Keys),
		KeptBytes: float64(first.idle - before),
		LostBytes: float64(second.idle - first.idle),
	}, nil
}

// A pass is the cost of taking all keys and releasing them.
type pass struct {
	cpu        time.Duration
	oneMore    float64
	held, idle int64 // the memory while the keys were held, and after it
}

// pass takes all keys and releases them.
func (k *Keys) pass(ctx context.Context, name string, leases []*core.Lease) (p pass, err error) {
	taking, err := cpuOf(func() error { return k.take(ctx, name, leases) })
	if err != nil {
		return p, err
	}
	p.held = measure.LiveMemory()
	if p.oneMore, err = k.oneMore(ctx); err != nil {
		return p, err
	}
	giving, err := cpuOf(func() error { return release(ctx, leases) })
	if err != nil {
		return p, err
	}
	p.cpu = taking + giving
	clear(leases)
	p.idle = measure.LiveMemory()
	return p, nil
}

// take takes one key for each element of leases.
func (k *Keys) take(ctx context.Context, name string, leases []*core.Lease) error {
	return inParallel(len(leases), func(i int) (err error) {
		leases[i], err = k.stack.Locks.Lock(ctx, name+":"+strconv.Itoa(i))
		return err
	})
}

// release releases leases.
func release(ctx context.Context, leases []*core.Lease) error {
	return inParallel(len(leases), func(i int) error { return leases[i].Release(ctx) })
}

// oneMore returns the median time of one more key, in microseconds.
func (k *Keys) oneMore(ctx context.Context) (float64, error) {
	times := make([]float64, extraLocks)
	for i := range times {
		began := time.Now()
		lease, err := k.stack.Locks.Lock(ctx, "one more")
		if err != nil {
			return 0, err
		}
		if err := lease.Release(ctx); err != nil {
			return 0, err
		}
		times[i] = float64(time.Since(began)) / float64(time.Microsecond)
	}
	return measure.Median(times), nil
}

// cpuOf returns the CPU time of this process while do runs.
func cpuOf(do func() error) (time.Duration, error) {
	before, err := measure.Used()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := measure.Used()
	return after.Since(before).CPU, err
}

// inParallel runs do for 0 to n-1 on a fixed number of goroutines.
func inParallel(n int, do func(i int) error) error {
	var workers sync.WaitGroup
	errs := make([]error, parallelLocks)
	for g := range parallelLocks {
		workers.Go(func() {
			for i := g; i < n && errs[g] == nil; i += parallelLocks {
				errs[g] = do(i)
			}
		})
	}
	workers.Wait()
	return cmp.Or(errs...)
}

// Close ends the connections.
func (k *Keys) Close() error { return k.stack.Close() }
