// Package load has the suites that compare locks: goroutines of one or several processes take a
// lock again and again, or once in each round of a burst.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/exclusion"
	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// A Job is the work of one process in a run.
type Job struct {
	Shape
	Lock    string        // the name of its kind
	Addrs   []string      // of Redis
	Memory  string        // the file of the exclusion.Memory of all processes
	Process int           // the number of this process, from 0
	Window  time.Duration // how long the goroutines lock, unless it is a burst
	Rounds  int           // of a burst

	locks    []lock.Locker
	held     []lock.Held  // of many keys
	served   atomic.Int64 // of them
	giveUp   context.CancelFunc
	commands *wire.Counter
	memory   *exclusion.Memory
}

const (
	// hotKey is the key of all goroutines, unless they have keys of their own.
	hotKey = "hot"
	// warmUps is how often each goroutine takes its own key before the run, so that connections
	// are open and scripts are loaded.
	warmUps = 3
	// warmUpTime bounds the wait for a key that all goroutines request.
	warmUpTime = 3 * time.Second
	// dialsAtOnce is how many Lockers of a process warm up at a time. Each opens connections.
	dialsAtOnce = 8
	// drainTime is how long waiters may take after the window. A waiter that has not got the lock
	// by then has starved.
	drainTime = 5 * time.Second
)

// Prepare opens the lock and warms it up.
func (j *Job) Prepare(ctx context.Context) (err error) {
	j.commands = new(wire.Counter)
	for range max(1, j.Lockers) {
		locks, err := j.open()
		if err != nil {
			return err
		}
		j.locks = append(j.locks, locks)
	}
	if j.memory, err = exclusion.Open(j.Memory); err != nil {
		return err
	}
	atOnce := j.Goroutines
	if j.Lockers > 1 {
		atOnce = dialsAtOnce
	}
	errs := make([]error, j.Goroutines)
	places := make(chan struct{}, atOnce)
	j.each(func(g int) {
		places <- struct{}{}
		defer func() { <-places }()
		errs[g] = j.warmUp(ctx, g)
	})
	if err := cmp.Or(errs...); err != nil {
		return fmt.Errorf("%s: warm-up: %w", j.Lock, err)
	}
	if j.holdsForOther() {
		return j.take(ctx)
	}
	return nil
}

// open opens a Locker, with a client of its own.
func (j *Job) open() (lock.Locker, error) {
	kind, err := lock.Find(j.Lock)
	if err != nil {
		return nil, err
	}
	return kind.Open(lock.Config{
		Addrs: j.Addrs, Commands: j.commands, Permits: j.Permits, IsCrowd: j.Lockers > 1 || j.Keys > 0,
	})
}

// warmUp takes a key that no other goroutine uses, and, if the run is contended, a key that all
// use, which loads what only waiters need. A lock that loses a waiter here is no error: if it
// happens again, the run reports the waiter.
func (j *Job) warmUp(ctx context.Context, g int) error {
	for range warmUps {
		if err := j.lockOnce(ctx, g, ownKey(j.Process, g)); err != nil {
			return err
		}
	}
	if j.OwnKeys {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, warmUpTime)
	defer cancel()
	if err := j.lockOnce(ctx, g, "warm"); ctx.Err() == nil {
		return err
	}
	return nil
}

// lockOnce takes a key and releases it. If the run has shared locks, it does so twice.
func (j *Job) lockOnce(ctx context.Context, g int, key string) error {
	locks := j.lockerOf(g)
	takes := []func(context.Context, string) (lock.Held, error){locks.Lock}
	if j.Readers > 0 {
		takes = append(takes, locks.(lock.Sharer).Share)
	}
	for _, take := range takes {
		held, err := take(ctx, key)
		if err == nil {
			err = held.Release(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Run locks from the time start on, and returns an Outcome.
func (j *Job) Run(ctx context.Context, start time.Time) (any, error) {
	if j.Keys > 0 {
		return j.runMany(ctx, start)
	}
	workers := make([]*worker, j.Goroutines)
	for g := range workers {
		workers[g] = j.worker(g)
	}
	if j.Burst {
		return j.runBurst(ctx, start, workers)
	}
	return j.runLoop(ctx, start, workers), nil
}

// Close closes the lock.
func (j *Job) Close() error {
	if j.giveUp != nil {
		j.giveUp()
	}
	var errs []error
	for _, locks := range j.locks {
		errs = append(errs, locks.Close())
	}
	if j.memory != nil {
		errs = append(errs, j.memory.Close())
	}
	return errors.Join(errs...)
}

// each calls work on all goroutines and returns when they have ended.
func (j *Job) each(work func(g int)) {
	var group sync.WaitGroup
	for g := range j.Goroutines {
		group.Go(func() { work(g) })
	}
	group.Wait()
}

// lockerOf returns the Locker of a goroutine.
func (j *Job) lockerOf(g int) lock.Locker { return j.locks[g%len(j.locks)] }

// ownKey returns the key that only one goroutine of all processes uses.
func ownKey(process, g int) string { return "own:" + strconv.Itoa(process) + ":" + strconv.Itoa(g) }
