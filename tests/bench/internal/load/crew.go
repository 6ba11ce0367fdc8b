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
	// warmUps is how often each goroutine takes its own key beforehand, so that
	// connections are up and scripts are loaded.
	warmUps = 3
	// warmUpTime bounds the wait for a key that all want.
	warmUpTime = 3 * time.Second
	// drainTime is how long waiters are waited for when the time is up. Who has
	// not got the lock by then is stuck.
	drainTime = 5 * time.Second
)

// A Crew is the goroutines of one process. It is the common part of the jobs.
type Crew struct {
	Lock       lock.Name
	Addrs      []string      // of Redis
	Memory     string        // the file of a shared.Memory; empty where nothing is contended
	Process    int           // the number of this process, from 0
	Processes  int           // how many there are
	Goroutines int           // in each process
	Section    time.Duration // how long a holder sleeps; 0 for an empty section

	locks    lock.Locker
	commands *wire.Counter
	memory   *shared.Memory
}

// hotKey is the key that all want, where they do not have keys of their own.
const hotKey = "hot"

// Prepare opens the lock and warms it up.
func (c *Crew) Prepare(ctx context.Context) (err error) {
	c.commands = new(wire.Counter)
	if c.locks, err = lock.Open(c.Lock, lock.Config{Addrs: c.Addrs, Commands: c.commands}); err != nil {
		return err
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

// warmUp takes a key that nobody else wants, and where the run is contended one
// that all want, for what only waiters need. A waiter that a lock forgets is no
// reason to give up here; the run shows it as stuck if it happens again.
func (c *Crew) warmUp(ctx context.Context, g int) error {
	for range warmUps {
		if err := c.once(ctx, c.ownKey(g)); err != nil {
			return err
		}
	}
	if c.memory == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, warmUpTime)
	defer cancel()
	if err := c.once(ctx, "warm"); ctx.Err() == nil {
		return err
	}
	return nil
}

// once takes a key and gives it back.
func (c *Crew) once(ctx context.Context, key string) error {
	held, err := c.locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	return held.Release(ctx)
}

// Close closes the lock.
func (c *Crew) Close() error {
	var errs []error
	if c.locks != nil {
		errs = append(errs, c.locks.Close())
	}
	if c.memory != nil {
		errs = append(errs, c.memory.Close())
	}
	return errors.Join(errs...)
}

// each runs work on all goroutines of the crew and returns when they have ended.
func (c *Crew) each(work func(g int)) {
	var crew sync.WaitGroup
	for g := range c.Goroutines {
		crew.Go(func() { work(g) })
	}
	crew.Wait()
}

// ownKey is the key that only one goroutine of all processes has.
func (c *Crew) ownKey(g int) string {
	return "own:" + strconv.Itoa(c.Process) + ":" + strconv.Itoa(g)
}

// who is the number of a goroutine among those of all processes, from 1.
func (c *Crew) who(g int) int64 { return int64(c.Process*c.Goroutines + g + 1) }
