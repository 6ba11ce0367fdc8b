package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/shared"
	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

const (
	// warmUps is how often each goroutine takes its own key before the run, so that
	// connections are open and scripts are loaded.
	warmUps = 3
	// warmUpTime bounds the wait for a key that all goroutines request.
	warmUpTime = 3 * time.Second
	// drainTime is how long waiters may take after the window. A waiter that has not got
	// the lock by then is stuck.
	drainTime = 5 * time.Second
)

// Workers are the goroutines of one process. They are the common part of the jobs.
type Workers struct {
	Lock       lock.Name
	Addrs      []string      // of Redis
	Memory     string        // the file of a shared.Memory; "" without contention
	Process    int           // the number of this process, from 0
	Processes  int           // the number of processes
	Goroutines int           // in each process
	Section    time.Duration // how long a holder sleeps; 0 for an empty section
	Permits    int           // how many goroutines may hold a key at a time; 0 is one
	Readers    int           // of a hundred turns, so many take a shared lock
	Lockers    int           // the goroutines have so many Lockers with clients of their own, like processes; 0 is one

	locks    []lock.Locker
	commands *wire.Counter
	memory   *shared.Memory
}

// hotKey is the key of all goroutines, unless they have keys of their own.
const hotKey = "hot"

// Prepare opens the lock and warms it up.
func (c *Workers) Prepare(ctx context.Context) (err error) {
	c.commands = new(wire.Counter)
	for range max(1, c.Lockers) {
		locks, err := lock.Open(c.Lock, lock.Config{Addrs: c.Addrs, Commands: c.commands, Permits: c.Permits})
		if err != nil {
			return err
		}
		c.locks = append(c.locks, locks)
	}
	if c.Memory != "" {
		if c.memory, err = shared.Open(c.Memory); err != nil {
			return err
		}
	}
	errs := make([]error, c.Goroutines)
	c.each(func(g int) { errs[g] = c.warmUp(ctx, g) })
	if err := cmp.Or(errs...); err != nil {
		return fmt.Errorf("%s: warm-up: %w", c.Lock, err)
	}
	return nil
}

// warmUp takes a key that no other goroutine uses, and, if the run is contended, a key that
// all use, which loads what only waiters need. A lock that loses a waiter here is no error:
// if it happens again, the run reports the waiter as stuck.
func (c *Workers) warmUp(ctx context.Context, g int) error {
	for range warmUps {
		if err := c.lockOnce(ctx, g, c.ownKey(g)); err != nil {
			return err
		}
	}
	if c.memory == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, warmUpTime)
	defer cancel()
	if err := c.lockOnce(ctx, g, "warm"); ctx.Err() == nil {
		return err
	}
	return nil
}

// lockOnce takes a key and releases it. If the run has shared locks, it does so twice.
func (c *Workers) lockOnce(ctx context.Context, g int, key string) error {
	locks := c.lockerOf(g)
	takes := []func(context.Context, string) (lock.Held, error){locks.Lock}
	if c.Readers > 0 {
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

// lockerOf returns the Locker of a goroutine.
func (c *Workers) lockerOf(g int) lock.Locker { return c.locks[g%len(c.locks)] }

// Close closes the lock.
func (c *Workers) Close() error {
	var errs []error
	for _, locks := range c.locks {
		errs = append(errs, locks.Close())
	}
	if c.memory != nil {
		errs = append(errs, c.memory.Close())
	}
	return errors.Join(errs...)
}

// each calls work on all goroutines and returns when they have ended.
func (c *Workers) each(work func(g int)) {
	var group sync.WaitGroup
	for g := range c.Goroutines {
		group.Go(func() { work(g) })
	}
	group.Wait()
}

// ownKey returns the key that only one goroutine of all processes uses.
func (c *Workers) ownKey(g int) string {
	return "own:" + strconv.Itoa(c.Process) + ":" + strconv.Itoa(g)
}

// id returns a number that is unique among the goroutines of all processes, from 1.
func (c *Workers) id(g int) int64 { return int64(c.Process*c.Goroutines + g + 1) }
