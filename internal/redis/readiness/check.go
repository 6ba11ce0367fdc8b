package readiness

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/command"
)

// checkMark stands before the random part of the keys that a Check uses.
const checkMark = "check:"

// A Check finds out whether a Redis does all that a Store needs of it, by using
// it: see play. It is made for one Run.
type Check struct {
	rdb      redis.UniversalClient
	prefix   string
	bound    time.Duration
	replicas command.Replicas
	work     inflight.Counter // commands that were left behind, and cleaning
}

// NewCheck returns a Check of the Redis behind rdb, with the rights that a Store
// of this prefix needs. Each of its commands may take as long as the bound.
func NewCheck(rdb redis.UniversalClient, prefix string, bound time.Duration, replicas command.Replicas) *Check {
	return &Check{rdb: rdb, prefix: prefix, bound: bound, replicas: replicas}
}

// Run returns nil if Redis does all that a Store needs. Otherwise it returns a *Finding, or
// ctx's error if ctx ends first. Without an error there may be a warning of what may still
// go wrong.
func (c *Check) Run(ctx context.Context) (warnings []error, err error) {
	targets, err := c.targets(ctx)
	if err != nil {
		return nil, c.finding(ctx, "", c.why(ctx, c.rdb, err))
	}
	type result struct{ warning, err error }
	results := make([]chan result, len(targets))
	for i, t := range targets {
		results[i] = make(chan result, 1)
		c.aside(func() {
			warning, err := c.checkNode(ctx, t)
			results[i] <- result{warning, err}
		})
	}
	for _, found := range results {
		r := <-found // which does not outlive ctx
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

// Close waits for the commands that Run has left behind.
func (c *Check) Close() { _ = c.work.Wait(context.Background()) }

// checkNode checks one server.
func (c *Check) checkNode(ctx context.Context, t target) (warning, err error) {
	s, err := c.newScene(t)
	if err != nil {
		return nil, err
	}
	defer c.aside(s.end)
	if err := s.play(ctx); err != nil {
		return nil, c.finding(ctx, t.addr, c.why(ctx, t.node, s.explain(ctx, err)))
	}
	if policy := s.evicts(ctx); policy != "" {
		return &Finding{addr: t.addr, says: "maxmemory-policy is " + policy + ", so that redis evicts locks when its memory is full: " +
			"set maxmemory-policy to noeviction"}, nil
	}
	return nil, nil
}

// aside runs f on a goroutine that Close waits for.
func (c *Check) aside(f func()) {
	c.work.Add()
	go func() {
		defer c.work.Done()
		f()
	}()
}

// curiosity is how long a Check looks for why it has got no answer.
const curiosity = 2 * time.Second

// why returns why there was no answer, if that comes out: a client dials several
// times before it says so, mostly for longer than a command may take.
func (c *Check) why(ctx context.Context, node redis.UniversalClient, err error) error {
	if !errors.Is(err, command.ErrNoReply) {
		return err
	}
	failed := c.withinBound(ctx, curiosity, func(ctx context.Context) error {
		return node.Process(ctx, command.New(0, []any{"ping"}))
	})
	if failed == nil || !command.IsTransport(failed) {
		return err
	}
	return failed
}

// within runs a command of the client, and leaves it behind when it takes longer
// than the bound, or when ctx ends.
func (c *Check) within(ctx context.Context, send func(ctx context.Context) error) error {
	return c.withinBound(ctx, c.bound, send)
}

func (c *Check) withinBound(ctx context.Context, bound time.Duration, send func(ctx context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, bound)
	failed := make(chan error, 1)
	c.aside(func() {
		defer cancel()
		failed <- send(bounded)
	})
	var err error
	select {
	case err = <-failed:
	case <-bounded.Done(): // by its own end too, and then there is an answer
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
	default:
		return command.Sanitize(err)
	}
}
