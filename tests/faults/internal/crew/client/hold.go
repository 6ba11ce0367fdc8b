package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync/atomic"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/faults/internal/clock"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// A hold is a lease that was granted to a client, as it is written down.
type hold struct {
	client *client
	lease  *core.Lease
	key    string // as it was asked for
	name   string // of no other lease
	number int    // of an attempt
	// ended is when the lease's context did, while it was held; 0 if it did not.
	ended  atomic.Int64
	untold func() bool // ends the watch over the context
}

// granted tells that a call has got a lease, and watches over the lease from now on.
func (c *client) granted(asked *call, lease *core.Lease) *hold {
	at := clock.Now()
	h := &hold{
		client: c, lease: lease, key: asked.op.Key, number: asked.op.Number,
		name: fmt.Sprintf("%d/%d", c.Process, c.leases.Add(1)),
	}
	asked.op.Lease, asked.op.Episode = h.name, episodeOf(lease)
	asked.op.Fence, asked.op.ValidUntil = lease.Fence(), c.clock.Of(lease.ValidUntil())
	asked.end(at, history.Granted, nil)
	h.untold = context.AfterFunc(lease.Context(), h.tellEnd)
	return h
}

// tellEnd tells that the lease's context has ended.
func (h *hold) tellEnd() {
	at := clock.Now()
	h.ended.Store(at)
	op := h.op(history.Told)
	op.Call, op.ValidUntil = at, h.client.clock.Of(h.lease.ValidUntil())
	ctx := h.lease.Context()
	cause := context.Cause(ctx)
	h.client.begin(op).end(at, outcomeOf(ctx, cause), cause)
}

// op returns a call on the lease.
func (h *hold) op(kind history.Kind) history.Op {
	return history.Op{
		Kind: kind, Key: h.key, Lease: h.name, Episode: episodeOf(h.lease), Fence: h.lease.Fence(), Number: h.number,
	}
}

// valid reports whether the lease may be relied on, as far as its holder knows, and
// when that was so.
func (h *hold) valid() (looked int64, is bool) {
	looked = clock.Now() // first: who stands still after that has looked before
	return looked, h.lease.Context().Err() == nil && looked < h.client.clock.Of(h.lease.ValidUntil())
}

// leave tells that the holder is about to end the lease by a call of that kind, for
// a Commit with that record. It relies on the lease no more.
func (h *hold) leave(kind history.Kind, record string) *call {
	h.untold()
	op := h.op(kind)
	op.Record = record
	op.ValidUntil = h.client.clock.Of(h.lease.ValidUntil())
	op.Call = clock.Now()
	op.Believed = min(op.Call, op.ValidUntil)
	if ended := h.ended.Load(); ended != 0 {
		op.Believed = min(op.Believed, ended)
	}
	return h.client.begin(op)
}

// end makes the call that ends the lease.
func (h *hold) end(ctx context.Context, left *call, end func(context.Context) error) {
	err := end(ctx)
	left.end(clock.Now(), outcomeOf(ctx, err), err)
}

// release releases the lease: now and then with a context that has ended, and now
// and then once more.
func (h *hold) release() {
	ctx := h.client.leaving()
	left := h.leave(history.Release, "")
	h.end(ctx, left, h.lease.Release)
	if h.client.chance(10) {
		again := left.op
		again.Call, again.Return, again.Outcome, again.Error = 0, 0, history.None, ""
		h.end(context.Background(), h.client.begin(again), h.lease.Release)
	}
}

// leaving returns a context for a call that ends something, which now and then is
// cancelled already: it must work all the same.
func (c *client) leaving() context.Context {
	ctx := context.Background()
	if c.chance(20) {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		return ended
	}
	return ctx
}

// extend renews the lease once, by hand, for longer than its renewals do.
func (h *hold) extend() {
	ctx := context.Background()
	asked := h.client.begin(h.op(history.Extend))
	err := h.lease.Extend(ctx, h.client.TTL+h.client.upTo(h.client.TTL))
	at := clock.Now()
	asked.op.ValidUntil = h.client.clock.Of(h.lease.ValidUntil())
	asked.end(at, outcomeOf(ctx, err), err)
}

// episodeOf names the token of a lease without telling it.
func episodeOf(lease *core.Lease) string {
	sum := sha256.Sum256([]byte(lease.Token()))
	return hex.EncodeToString(sum[:6])
}
