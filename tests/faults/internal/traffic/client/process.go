package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/resource"
	"github.com/reqlock/reqlock/tests/faults/internal/watchdog"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// closeTimeout bounds the closing of a Locker, and the end of the goroutines of go-redis
// after that.
const closeTimeout = 10 * time.Second

// A process is what the clients of a process share.
type process struct {
	Config
	clock    clock.Clock
	reporter *reporter
	locks    *core.Locker
	leases   atomic.Int64  // the number of granted leases
	ending   chan struct{} // closed when the clients must end
}

// run runs a client process.
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

// watchLags reports the lags of the process until stop is called.
func (p *process) watchLags() (stop func()) {
	if p.StallTime == 0 {
		return func() {}
	}
	return watchdog.Watch(p.StallTime, p.reporter.lag)
}

// work runs all clients, and returns when they have ended.
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

// RandomOf returns the random numbers of a client in one of its generations. They depend
// only on the seed. Each client and each generation has a stream of its own. Stream 0
// belongs to the fault.
func RandomOf(seed uint64, number, life int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(number+1)<<32|uint64(life))) //nolint:gosec // neither secret nor negative
}

// countPause is the pause between two counts of goroutines.
const countPause = 10 * time.Millisecond

// countGoroutines counts the goroutines of the process until stop is called. Stop calls
// tell with the largest number.
func countGoroutines(tell func(most int)) (stop func()) {
	end := make(chan struct{})
	var counting sync.WaitGroup
	counting.Go(func() {
		ticker := time.NewTicker(countPause)
		defer ticker.Stop()
		most := 0
		for {
			most = max(most, runtime.NumGoroutine())
			select {
			case <-end:
				tell(most)
				return
			case <-ticker.C:
			}
		}
	})
	return sync.OnceFunc(func() {
		close(end)
		counting.Wait()
	})
}
