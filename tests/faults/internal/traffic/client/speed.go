package client

import (
	"context"
	"fmt"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// The batch sizes of a client at full speed.
const (
	// leasesPerReport is how many leases are reported together.
	leasesPerReport = 128
	// leasesPerDeletion is how many leases a client takes, on average, before it deletes
	// the counter of fencing numbers. On a busy machine no other process could delete the
	// counter within the milliseconds for which a caller runs at full speed.
	leasesPerDeletion = 64
)

// takeAtFullSpeed takes and releases the first lock until the process ends. At random times
// it deletes the counter of fencing numbers. It reports a failed call as any other client
// does.
func (c *client) takeAtFullSpeed() {
	rdb := c.connect(c.Redis.Addrs...)
	defer func() { _ = rdb.Close() }()
	ctx, key := context.Background(), exclusiveKeys()[0]
	some := make([]history.FastLease, 0, leasesPerReport)
	for !c.isEnding() {
		called := clock.Now()
		lease, err := c.locks.Lock(ctx, key)
		returned := clock.Now()
		if err != nil {
			c.report(history.Op{Kind: history.Lock, Key: key, Call: called}).end(returned, outcomeOf(ctx, err), err)
			time.Sleep(c.upTo(longPause))
			continue
		}
		some = append(some, history.FastLease{
			Process: c.Process, Client: c.number, Call: called, Return: returned, Fence: lease.Fence(), Key: key,
		})
		c.releaseAtFullSpeed(ctx, lease, some[len(some)-1])
		if len(some) == leasesPerReport {
			c.reporter.fastLeases(some)
			some = some[:0]
		}
		if c.random.IntN(leasesPerDeletion) == 0 {
			_ = rdb.Del(ctx, "{"+Prefix+key+"}:f").Err() // a failed deletion does no harm
		}
	}
	if len(some) > 0 {
		c.reporter.fastLeases(some)
	}
}

// releaseAtFullSpeed releases a lease. If that fails, it reports the calls of the lease.
func (c *client) releaseAtFullSpeed(ctx context.Context, lease *core.Lease, d history.FastLease) {
	endCall := clock.Now()
	valid := c.clock.Of(lease.ValidUntil())
	err := lease.Release(ctx)
	if err == nil {
		return
	}
	op := history.Op{
		Kind: history.Lock, Key: d.Key, Lease: fmt.Sprintf("%d/%d", c.Process, c.leases.Add(1)),
		Episode: episodeOf(lease), Fence: d.Fence, ValidUntil: valid, Call: d.Call,
	}
	c.report(op).end(d.Return, history.Granted, nil)
	op.Kind, op.Call, op.ReliedUntil = history.Release, endCall, min(endCall, valid)
	c.report(op).end(clock.Now(), outcomeOf(ctx, err), err)
}
