package client

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// The limits of permits. The key of mixed leases has two of them, as during a deploy.
const permits, fewPermits, morePermits = 3, 2, 4

// The shares of turns on shared keys, of a hundred.
const (
	tryPercent            = 20
	writerPercent         = 25
	fewWritersPercent     = 4
	exclusiveMixedPercent = 20
	unlimitedMixedPercent = 30
)

// longestSharedWork is the longest work under a shared lease, except for the few that last
// for more than a TTL.
const longestSharedWork = 12 * time.Millisecond

// takeShared takes a permit, or a shared or an exclusive lease of a key that has both.
func (c *client) takeShared() history.Outcome {
	m := c.chooseWait()
	defer m.cancel()
	key, limit := c.sharedKey()
	m.limit, m.locks = limit, viewOf(m.locks, key == readersKey, limit)
	var h *hold
	var outcome history.Outcome
	if c.chance(tryPercent) {
		h, outcome = c.tryLock(m, key)
	} else {
		h, outcome = c.lock(m, key)
	}
	if h != nil {
		c.sharedSection(h, limit)
		h.release()
	}
	return outcome
}

// sharedKey returns a key, and the limit of the lease to take.
func (c *client) sharedKey() (key string, limit int) {
	switch n := c.random.IntN(5); {
	case c.ReadersOnly && c.chance(fewWritersPercent):
		return readersKey, 0
	case c.ReadersOnly:
		return readersKey, history.Unlimited
	case n < 2:
		return permitsKey, permits
	case n < 4 && c.chance(writerPercent):
		return readersKey, 0
	case n < 4:
		return readersKey, history.Unlimited
	case c.chance(exclusiveMixedPercent):
		return mixedKey, 0
	case c.chance(unlimitedMixedPercent):
		return mixedKey, history.Unlimited
	case c.Process%2 == 0:
		return mixedKey, fewPermits
	default:
		return mixedKey, morePermits
	}
}

// viewOf returns the Locker for leases with a limit. Permits have no fencing numbers.
func viewOf(locks *core.Locker, fenced bool, limit int) *core.Locker {
	options := []core.Option{core.WithFencing(fenced)}
	switch {
	case limit == history.Unlimited:
		options = append(options, core.WithShared(true))
	case limit > 0:
		options = append(options, core.WithPermits(limit))
	}
	return locks.With(options...)
}

// sharedSection is what a client does under a lease of a shared key. A writer does what it
// does under any lock. A reader reads a register twice. A holder of a permit only works.
func (c *client) sharedSection(h *hold, limit int) {
	switch limit {
	case 0:
		c.section(h)
		return
	case history.Unlimited:
		if _, ok := c.read(h); !ok {
			return
		}
	}
	c.workShared(h.lease.Context())
	if c.chance(5) {
		h.extend()
	}
	if looked, valid := h.isValid(); valid && limit == history.Unlimited {
		must(c.user.ReadAgain(h.key, h.lease.Fence(), looked))
	}
}

// workShared waits: for some milliseconds, so that shared leases overlap, and seldom up to
// three TTLs.
func (c *client) workShared(ctx context.Context) {
	if c.chance(1) {
		rest(ctx, c.upTo(3*c.TTL))
		return
	}
	rest(ctx, c.upTo(longestSharedWork))
}
