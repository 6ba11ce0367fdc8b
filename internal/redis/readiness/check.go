// Package readiness checks that a Redis supports all that a Store needs. It runs the
// transitions of a lock and of an idempotent request on a unique key, and then deletes the
// key. Once that has found no problem, short runs follow, with few commands. The package describes
// a problem in one sentence, with the remedy.
package readiness

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/command"
)

// keyMark precedes the random part of the keys of a Check.
const keyMark = "check:"

// A Check checks that a Redis supports all that a Store needs: see probe. It is made for one
// Run.
type Check struct {
	// Scans says that the Store will search for unknown outcomes, and needs the right to do so.
	Scans bool
	// Registers says that the process will write a record of itself.
	Registers bool

	rdb      redis.UniversalClient
	prefix   string
	bound    time.Duration
	replicas command.Replicas
	passed   *Passed
	work     inflight.Counter // abandoned commands, and the deletion of keys
}

// NewCheck returns a Check of the Redis behind rdb. It checks the rights that a Store with
// this prefix needs. The bound is the longest time of each command. All Checks of a Locker have
// the same passed.
func NewCheck(rdb redis.UniversalClient, prefix string, bound time.Duration, replicas command.Replicas, passed *Passed) *Check {
	return &Check{rdb: rdb, prefix: prefix, bound: bound, replicas: replicas, passed: passed}
}

// Run returns nil if Redis supports all that a Store needs. Otherwise it returns a *Finding, or
// ctx's error if ctx ends first. Without an error there may be a warning: Redis may evict
// locks.
//
// The run is a short one if the last full run found no problem, and is not too old. A full run
// follows at once if the short run fails, or if a server has changed.
//
// If Redis seems to lose keys, a full run checks once more, with other keys. A command without a
// reply is sent again: then a release may find nothing to release, or the first copy may be executed
// after later commands. So Run does not report a loss of keys that does not happen again.
func (c *Check) Run(ctx context.Context) (warnings []error, err error) {
	if warnings, ok := c.runShort(ctx); ok {
		return warnings, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c.passed.last.Store(nil) // until the full run has passed
	at := time.Now()
	servers, warnings, err := c.runFull(ctx)
	if errors.Is(err, errNotKept) {
		lost := err
		servers, warnings, err = c.runFull(ctx) // fails if ctx has ended
		if err != nil && ctx.Err() != nil {
			return nil, lost
		}
	}
	if err != nil {
		return nil, err
	}
	c.passed.last.Store(&pass{at, servers})
	return warnings, nil
}

// runFull checks each server by all steps of a probe.
func (c *Check) runFull(ctx context.Context) (servers map[string]string, warnings []error, err error) {
	targets, err := c.targets(ctx)
	if err != nil {
		return nil, nil, c.finding(ctx, "", c.diagnose(ctx, c.rdb, err))
	}
	return c.probeEach(ctx, targets, func(p *probe, ctx context.Context) (report, error) {
		found, err := p.run(ctx)
		if err != nil {
			return report{}, c.finding(ctx, p.target.addr, c.diagnose(ctx, p.target.node, p.explain(ctx, err)))
		}
		return found, nil
	})
}

// A report is what a probe has found at a server without a problem.
type report struct {
	state   string // while it is equal, the server has not changed
	warning error
}

// probeEach probes all servers at the same time. It returns the first warning, and the first error.
func (c *Check) probeEach(ctx context.Context, targets []target, run func(*probe, context.Context) (report, error)) (
	servers map[string]string, warnings []error, err error,
) {
	type result struct {
		report
		err error
	}
	results := make([]chan result, len(targets))
	for i, t := range targets {
		results[i] = make(chan result, 1)
		c.runAsync(func() {
			found, err := c.checkNode(ctx, t, run)
			results[i] <- result{found, err}
		})
	}
	servers = make(map[string]string, len(targets))
	for i, found := range results {
		r := <-found // it arrives when ctx ends, or earlier
		servers[targets[i].addr] = r.state
		if r.warning != nil && warnings == nil {
			warnings = []error{r.warning}
		}
		if err == nil {
			err = r.err
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return servers, warnings, nil
}

// Close waits for the commands that Run has abandoned.
func (c *Check) Close() { _ = c.work.Wait(context.Background()) }

// checkNode checks one server.
func (c *Check) checkNode(ctx context.Context, t target, run func(*probe, context.Context) (report, error)) (report, error) {
	p, err := c.newProbe(t)
	if err != nil {
		return report{}, err
	}
	defer c.runAsync(p.cleanUp)
	return run(p, ctx)
}

// runAsync runs f on a goroutine. Close waits for f.
func (c *Check) runAsync(f func()) {
	c.work.Add()
	go func() {
		defer c.work.Done()
		f()
	}()
}

// diagnoseTimeout is how long a Check tries to find the reason of a missing reply.
const diagnoseTimeout = 2 * time.Second

// diagnose returns the reason of a missing reply, or err if it finds none. A client dials
// several times before it reports that it cannot connect. That mostly takes longer than the
// bound of a command.
func (c *Check) diagnose(ctx context.Context, node redis.UniversalClient, err error) error {
	var busy *command.BusyPoolError
	if !errors.Is(err, command.ErrNoReply) || errors.As(err, &busy) {
		return err
	}
	if conns := c.busyPool(ctx, node); conns > 0 {
		return &command.BusyPoolError{Conns: conns}
	}
	failed := c.withinBound(ctx, diagnoseTimeout, func(ctx context.Context) error {
		return node.Process(ctx, command.New(0, []any{"ping"}))
	})
	if failed == nil || !command.IsTransport(failed) {
		return err
	}
	return failed
}

// within runs a command of the client. It abandons the command after the bound, or when ctx
// ends.
func (c *Check) within(ctx context.Context, send func(ctx context.Context) error) error {
	return c.withinBound(ctx, c.bound, send)
}

func (c *Check) withinBound(ctx context.Context, bound time.Duration, send func(ctx context.Context) error) error {
	deadline := time.Now().Add(bound)
	bounded, cancel := context.WithDeadline(ctx, deadline)
	failed := make(chan error, 1)
	c.runAsync(func() {
		defer cancel()
		failed <- command.Exec(func() error { return send(bounded) })
	})
	var err error
	select {
	case err = <-failed:
	case <-bounded.Done(): // also when send has returned: then failed has a result
		select {
		case err = <-failed:
		default:
			err = command.ErrNoReply
		}
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case command.IsTransport(err) && !time.Now().Before(deadline): // a subscription ends with its connection
		return command.ErrNoReply
	default:
		return command.Sanitize(err)
	}
}
