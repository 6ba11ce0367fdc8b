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
	rdb      redis.UniversalClient
	prefix   string
	bound    time.Duration
	replicas command.Replicas
	work     inflight.Counter // abandoned commands, and the deletion of keys
}

// NewCheck returns a Check of the Redis behind rdb. It checks the rights that a Store with
// this prefix needs. The bound is the longest time of each command.
func NewCheck(rdb redis.UniversalClient, prefix string, bound time.Duration, replicas command.Replicas) *Check {
	return &Check{rdb: rdb, prefix: prefix, bound: bound, replicas: replicas}
}

// Run returns nil if Redis supports all that a Store needs. Otherwise it returns a *Finding, or
// ctx's error if ctx ends first. Without an error there may be a warning: Redis may evict
// locks.
//
// If Redis seems to lose keys, Run checks once more, with other keys. A command without a reply is
// sent again: then a release may find nothing to release, or the first copy may be executed after
// later commands. So Run does not report a loss of keys that does not happen again.
func (c *Check) Run(ctx context.Context) (warnings []error, err error) {
	warnings, err = c.runOnce(ctx)
	if !errors.Is(err, errNotKept) {
		return warnings, err
	}
	warnings, again := c.runOnce(ctx) // fails if ctx has ended
	if again != nil && ctx.Err() != nil {
		return nil, err
	}
	return warnings, again
}

// runOnce checks each server once.
func (c *Check) runOnce(ctx context.Context) (warnings []error, err error) {
	targets, err := c.targets(ctx)
	if err != nil {
		return nil, c.finding(ctx, "", c.diagnose(ctx, c.rdb, err))
	}
	type result struct{ warning, err error }
	results := make([]chan result, len(targets))
	for i, t := range targets {
		results[i] = make(chan result, 1)
		c.runAsync(func() {
			warning, err := c.checkNode(ctx, t)
			results[i] <- result{warning, err}
		})
	}
	for _, found := range results {
		r := <-found // it arrives when ctx ends, or earlier
		if r.warning != nil && warnings == nil {
			warnings = []error{r.warning}
		}
		if err == nil {
			err = r.err
		}
	}
	if err != nil {
		return nil, err
	}
	return warnings, nil
}

// Close waits for the commands that Run has abandoned.
func (c *Check) Close() { _ = c.work.Wait(context.Background()) }

// checkNode checks one server.
func (c *Check) checkNode(ctx context.Context, t target) (warning, err error) {
	p, err := c.newProbe(t)
	if err != nil {
		return nil, err
	}
	defer c.runAsync(p.cleanUp)
	if err := p.run(ctx); err != nil {
		return nil, c.finding(ctx, t.addr, c.diagnose(ctx, t.node, p.explain(ctx, err)))
	}
	if policy := p.evictionPolicy(ctx); policy != "" {
		return &Finding{addr: t.addr, text: "maxmemory-policy is " + policy + ", so that redis evicts locks when its memory is full: " +
			"set maxmemory-policy to noeviction"}, nil
	}
	return p.adviseOnKinds(ctx), nil
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
