package readiness

import (
	"context"
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
)

// minTTL is the shortest TTL of the keys and the record of a Check. They expire if the Check
// cannot delete them.
const minTTL = 5 * time.Second

// A probe runs all transitions of a lock and of an idempotent request on a unique key of one
// server.
type probe struct {
	check   *Check
	target  target
	store   *redisstore.Store
	names   keyspace.Names
	scripts script.Set
	process string
	hints   chan string // tokens in messages
	// pubsubErr is why messages do not arrive, or nil.
	pubsubErr   error
	mayHaveKeys bool // the server may have keys of the probe
}

// The failures of a probe to which the server replied without an error.
var (
	errNoSubscription = errors.New("a subscription is not acknowledged within the command timeout")
	errNoMessage      = errors.New("a message does not arrive within the command timeout")
	errNotKept        = errors.New("redis loses or changes keys that reqlock has written")
)

func (c *Check) newProbe(t target) (*probe, error) {
	process := redisstore.NewProcess()
	st, err := redisstore.New(c.rdb, c.prefix, process, c.replicas)
	if err != nil {
		return nil, err
	}
	p := &probe{
		check: c, target: t, store: st, names: keyspace.New(c.prefix), scripts: script.New(c.replicas.Wanted()),
		process: process, hints: make(chan string, 16),
	}
	st.OnHint(func(_, token string) {
		select {
		case p.hints <- token:
		default: // no step reads the hints now
		}
	})
	return p, nil
}

// run runs the steps, and returns the first failure, or what it has found without one. A failure of pub/sub does not stop the
// other steps, because a lock works without pub/sub, only slower.
//
// Only the last step but one creates a fence: a fence lives for days, and the steps before it
// show that the probe may delete keys.
func (p *probe) run(ctx context.Context) (report, error) {
	ready, stop := p.store.Listen(p.target.key)
	defer stop()
	for _, step := range [...]func(context.Context) error{
		p.lock, p.readOtherSlots, p.lockByScript, p.attempt, p.asking, p.trySearch, p.tryRegister, p.checkPubSub,
		func(ctx context.Context) error { return p.awaitSubscription(ctx, ready) },
		p.share, p.handOff, p.deleteKeys,
	} {
		if err := step(ctx); err != nil {
			return report{}, err
		}
	}
	if p.pubsubErr != nil {
		return report{}, p.pubsubErr
	}
	return p.lookBy(ctx, "eval", p.scripts.Rights.Source)
}

// awaitMessage waits for a message that names the token.
func (p *probe) awaitMessage(ctx context.Context, token string) error {
	arrived := make(chan struct{})
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case named := <-p.hints:
				if named == token {
					close(arrived)
					return
				}
			case <-over:
				return
			}
		}
	}()
	return p.await(ctx, arrived, errNoMessage)
}

// await waits until the channel is closed, for the bound of a command. After the bound it sets
// pubsubErr, and returns nil.
func (p *probe) await(ctx context.Context, closed <-chan struct{}, pubsubErr error) error {
	timer := time.NewTimer(p.check.bound)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
		p.pubsubErr = pubsubErr
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// deleteKeys deletes all keys of the probe.
func (p *probe) deleteKeys(ctx context.Context) error {
	lock := p.name()
	companion := func(suffix string) string { return p.names.Companion(lock, suffix) }
	err := p.send(ctx, command.New(1, []any{
		"del", lock, companion(keyspace.QueueSuffix), companion(keyspace.FenceSuffix), companion(keyspace.RecordSuffix),
		companion(keyspace.SharedSuffix),
	}))
	if err == nil {
		p.mayHaveKeys = false
	}
	return err
}

// cleanUp waits for abandoned commands, and deletes the keys of a probe that failed.
func (p *probe) cleanUp() {
	_ = p.store.Close(context.Background())
	if p.mayHaveKeys {
		_ = p.deleteKeys(context.Background())
	}
}

// send sends a command once. It is not a transition.
func (p *probe) send(ctx context.Context, cmd *command.Generic) error {
	return p.check.within(ctx, func(ctx context.Context) error {
		_, err := cmd.Reply(p.target.node.Process(ctx, cmd))
		return err
	})
}

// name returns the name of the lock key.
func (p *probe) name() string { return p.names.Lock(p.target.key) }

// request returns the target with the n-th token, which is exclusive.
func (p *probe) request(n uint64) store.Target { return p.requestOf(store.Exclusive, n) }

// requestOf returns the target with the n-th token, which has this limit.
func (p *probe) requestOf(limit store.Limit, n uint64) store.Target {
	return store.Target{
		Key:   p.target.key,
		Limit: limit,
		Token: store.NewToken(p.process, limit, n),
		TTL:   p.ttl(),
		Bound: p.check.bound,
	}
}

// ttl returns the TTL of the probe's keys.
func (p *probe) ttl() time.Duration { return max(minTTL, 4*p.check.bound) }

// enqueue returns the request to enqueue the target.
func (p *probe) enqueue(r store.Target) store.EnqueueRequest {
	return store.EnqueueRequest{Target: r, Claim: p.ttl()}
}

// release returns the request to release the target.
func (p *probe) release(r store.Target) store.ReleaseRequest {
	return store.ReleaseRequest{Target: r, Claim: p.ttl()}
}

// do runs a transition, and waits for its result or for the end of ctx.
func do[R, A any](ctx context.Context, transition func(R, func(A, error)), r R) (A, error) {
	type result struct {
		answer A
		err    error
	}
	results := make(chan result, 1)
	transition(r, func(answer A, err error) { results <- result{answer, err} })
	select {
	case got := <-results:
		return got.answer, got.err
	case <-ctx.Done():
		var none A
		return none, ctx.Err()
	}
}

// verify returns errNotKept unless ok.
func verify(ok bool) error {
	if ok {
		return nil
	}
	return errNotKept
}
