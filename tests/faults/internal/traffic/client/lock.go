package client

import (
	"context"
	"slices"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// Bounded waits have a random length between these.
const (
	shortestWait = 50 * time.Millisecond
	longestWait  = time.Second
)

// A waitMode is the way in which a client waits for a lock.
type waitMode struct {
	ctx    context.Context
	cancel func() // ends the context, and so the lease
	locks  *core.Locker
	wait   time.Duration // 0 is for ever
	// until is the earliest time at which ctx ends by itself; 0 if it does not.
	until int64
	// unrenewed is set if the Locker does not renew leases.
	unrenewed bool
	// minHold is for how long the key stays locked at least; 0 if it need not.
	minHold time.Duration
	// limit is that of a shared lease; 0 for an exclusive one.
	limit int
}

// waitForever returns a wait without a bound.
func (c *client) waitForever() waitMode {
	return waitMode{ctx: context.Background(), cancel: func() {}, locks: c.locks}
}

// chooseWait chooses a kind of wait.
func (c *client) chooseWait() waitMode {
	m := c.waitForever()
	if c.chance(60) {
		return m
	}
	m.wait = shortestWait + c.upTo(longestWait-shortestWait)
	way := c.random.IntN(3)
	if way > 0 {
		m.until = clock.Now() + m.wait.Nanoseconds()
	}
	switch way {
	case 0:
		m.locks = c.locks.With(core.WithWait(m.wait))
	case 1:
		m.ctx, m.cancel = context.WithTimeout(m.ctx, m.wait)
	default:
		ctx, cancel := context.WithCancel(m.ctx)
		timer := time.AfterFunc(m.wait, cancel)
		m.ctx, m.cancel = ctx, func() { timer.Stop(); cancel() }
	}
	return m
}

// lockerFor returns the Locker for a key.
func lockerFor(locks *core.Locker, key string) *core.Locker {
	if key == unfencedKey {
		return locks.With(core.WithFencing(false))
	}
	return locks
}

// op returns the Lock that is about to be called. With a deadline it may wait only for the
// rest of the time.
func (m waitMode) op(key string) history.Op {
	op := history.Op{
		Kind: history.Lock, Key: key, Call: clock.Now(), Wait: m.wait.Nanoseconds(),
		Unrenewed: m.unrenewed, MinHold: m.minHold.Nanoseconds(), Limit: m.limit,
	}
	if m.until != 0 {
		op.Wait = max(1, m.until-op.Call)
	}
	return op
}

// lock waits for a lock. The hold is nil if the lock was not granted.
func (c *client) lock(m waitMode, key string) (*hold, history.Outcome) {
	call := c.report(m.op(key))
	lease, err := lockerFor(m.locks, key).Lock(m.ctx, key)
	return c.lockResult(m.ctx, call, lease, err)
}

// lockResult reports the result of a call for a lock.
func (c *client) lockResult(ctx context.Context, call *call, lease *core.Lease, err error) (*hold, history.Outcome) {
	if err != nil {
		call.end(clock.Now(), outcomeOf(ctx, err), err)
		return nil, call.op.Outcome
	}
	return c.granted(call, lease), history.Granted //nolint:contextcheck // a lease has a context of its own
}

// tryLock takes a lock with TryLock, which has no context of its own.
func (c *client) tryLock(m waitMode, key string) (*hold, history.Outcome) {
	ctx := context.Background()
	call := c.report(history.Op{Kind: history.Try, Key: key, MinHold: m.minHold.Nanoseconds(), Limit: m.limit})
	lease, err := lockerFor(m.locks, key).TryLock(ctx, key)
	return c.lockResult(ctx, call, lease, err)
}

// use works under a lock that was granted, and releases it.
func (c *client) use(h *hold, outcome history.Outcome) history.Outcome {
	if h != nil {
		c.section(h)
		h.release()
	}
	return outcome
}

// wait takes a lock with Lock.
func (c *client) wait() history.Outcome {
	m := c.chooseWait()
	defer m.cancel()
	return c.use(c.lock(m, c.key()))
}

// try takes a lock with TryLock: mostly the one that a plain SET takes.
func (c *client) try() history.Outcome {
	key := unfencedKey
	if c.chance(30) {
		key = c.key()
	}
	return c.use(c.tryLock(c.waitForever(), key))
}

// releaseEarly takes a lock that stays locked for a while, and mostly releases it before. It
// waits for the lock, or tries as a job does that must not run twice.
func (c *client) releaseEarly() history.Outcome {
	m, key := c.chooseWait(), c.key()
	defer m.cancel()
	m.locks, m.minHold = m.locks.With(core.WithMinHold(c.MinHold)), c.MinHold
	if c.chance(50) {
		return c.use(c.lock(m, key))
	}
	return c.use(c.tryLock(m, key))
}

// lockTwo takes two locks in the order of their keys, so that no two clients wait for each
// other.
func (c *client) lockTwo() history.Outcome {
	keys := []string{c.key(), c.key()}
	slices.Sort(keys)
	var holds []*hold
	defer func() {
		for _, h := range holds {
			h.release()
		}
	}()
	for _, key := range slices.Compact(keys) {
		h, outcome := c.lock(c.waitForever(), key)
		if h == nil {
			return outcome
		}
		holds = append(holds, h)
	}
	c.section(holds...)
	return history.Granted
}

// runLocked runs a section by Do, which releases the lock even if the section panics.
func (c *client) runLocked() history.Outcome {
	ctx, key := context.Background(), c.key()
	var h *hold
	var endCall *call
	var err error
	call := c.report(history.Op{Kind: history.Lock, Key: key})
	recoverInjected(func() {
		err = lockerFor(c.locks, key).Do(ctx, key, func(ctx context.Context) error {
			lease, _ := core.LeaseFromContext(ctx)
			h = c.granted(call, lease) //nolint:contextcheck // it has a context of its own
			defer func() { endCall = h.reportEndCall(history.Release, "") }()
			c.section(h) //nolint:contextcheck // a renewal by hand does not end with the lease
			if c.chance(30) {
				panic(injectedPanic{})
			}
			return nil
		})
	})
	if h == nil {
		call.end(clock.Now(), outcomeOf(ctx, err), err)
		return call.op.Outcome
	}
	h.end(ctx, endCall, h.lease.Release) // it is released already: this returns the result
	return history.Granted
}

// holdUnrenewed takes a lock that is not renewed, and relies on it until its validity ends. A
// careless client waits beyond its lease, and writes without checking the lease.
func (c *client) holdUnrenewed(careless bool) history.Outcome {
	m := c.waitForever()
	m.locks, m.unrenewed = c.locks.With(core.WithRenewal(false)), true
	h, outcome := c.lock(m, c.key())
	if h == nil {
		return outcome
	}
	if seen, ok := c.read(h); ok {
		if careless {
			time.Sleep(c.TTL + c.upTo(c.TTL))
		} else {
			rest(h.lease.Context(), 2*c.TTL)
		}
		c.write(h, seen, careless)
	}
	h.release()
	return outcome
}
