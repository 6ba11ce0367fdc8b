package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/clock"
	"github.com/reqlock/reqlock/tests/faults/internal/resource"
	"github.com/reqlock/reqlock/tests/faults/internal/watchdog"
)

// closeTimeout is how long the end of a Locker may take, and of what go-redis does
// after its own.
const closeTimeout = 10 * time.Second

// A process is what its clients share.
type process struct {
	Config
	clock    clock.Clock
	reporter *reporter
	locks    *core.Locker
	leases   atomic.Int64  // how many were granted
	ending   chan struct{} // is closed when they are to end
}

// run is the life of a client process.
func run(o Config) error {
	p := &process{
		Config: o, clock: clock.New(), ending: make(chan struct{}),
		reporter: &reporter{process: o.Process, to: os.NewFile(ReportFile, "reports")},
	}
	var err error
	var disconnect func() error
	if p.locks, disconnect, err = p.newLocker(); err != nil {
		return err
	}
	go func() {
		defer close(p.ending)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	stop := p.watchLags()
	defer stop()
	stopCounting := countGoroutines(p.reporter.size)
	defer stopCounting()
	if err := p.work(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := p.locks.Close(ctx); err != nil {
		return fmt.Errorf("close the locker: %w", err)
	}
	stop()
	stopCounting()
	return errors.Join(disconnect(), suite.Leaks(closeTimeout))
}

// watchLags tells of the lags of the process from now on, until stop is called.
func (p *process) watchLags() (stop func()) {
	if p.StallTime == 0 {
		return func() {}
	}
	return watchdog.Watch(p.StallTime, p.reporter.lag)
}

// work lets all clients take their turns, and returns when they have ended.
func (p *process) work() error {
	var clients sync.WaitGroup
	defer clients.Wait()
	for n := p.First; n < p.First+p.Clients; n++ {
		user, err := resource.Dial(context.Background(), p.Resource, p.Process, n)
		if err != nil {
			return err
		}
		c := &client{process: p, number: n, random: RandomOf(p.Seed, n, p.Generation), user: user}
		clients.Go(func() {
			defer func() { _ = user.Close() }()
			if p.FullSpeed {
				c.takeAtFullSpeed()
				return
			}
			c.takeTurns()
		})
	}
	return nil
}

// RandomOf are those of a client in one of its lives. A seed repeats them; each client
// and each life has others, and the stream 0 of a seed belongs to the fault.
func RandomOf(seed uint64, number, life int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(number+1)<<32|uint64(life))) //nolint:gosec // neither secret nor negative
}
