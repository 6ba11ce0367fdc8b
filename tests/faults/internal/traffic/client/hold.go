package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// A hold is a lease that was granted to a client, as it is reported.
type hold struct {
	client *client
	lease  *core.Lease
	key    string // as the client calls it
	name   string // unique in the run
	number int    // of an attempt
	// ended is when the lease's context ended while the lease was held; 0 if it did not.
	ended     atomic.Int64
	stopWatch func() bool // stops watching the context
}

// granted reports that a call was granted a lease, and watches the lease from now on.
func (c *client) granted(call *call, lease *core.Lease) *hold {
	at := clock.Now()
	h := &hold{
		client: c, lease: lease, key: call.op.Key, number: call.op.Number,
		name: fmt.Sprintf("%d/%d", c.Process, c.leases.Add(1)),
	}
	call.op.Lease, call.op.Episode = h.name, episodeOf(lease)
	call.op.Fence, call.op.ValidUntil = lease.Fence(), c.clock.Of(lease.ValidUntil())
	call.end(at, history.Granted, nil)
	h.stopWatch = context.AfterFunc(lease.Context(), h.reportEnd)
	return h
}

// reportEnd reports that the lease's context has ended.
func (h *hold) reportEnd() {
	at := clock.Now()
	h.ended.Store(at)
	op := h.op(history.LeaseEnd)
	op.Call, op.ValidUntil = at, h.client.clock.Of(h.lease.ValidUntil())
	ctx := h.lease.Context()
	cause := context.Cause(ctx)
	h.client.report(op).end(at, outcomeOf(ctx, cause), cause)
}

// op returns a call on the lease.
func (h *hold) op(kind history.Kind) history.Op {
	return history.Op{
		Kind: kind, Key: h.key, Lease: h.name, Episode: episodeOf(h.lease), Fence: h.lease.Fence(), Number: h.number,
	}
}

// isValid reports whether the holder may rely on the lease, as far as it knows, and when
// that was checked.
func (h *hold) isValid() (looked int64, is bool) {
	looked = clock.Now() // before the check: a pause after that must count as a pause after the check
	return looked, h.lease.Context().Err() == nil && looked < h.client.clock.Of(h.lease.ValidUntil())
}

// reportEndCall reports that the holder is about to end the lease by a call of that kind.
// The record is that of a Commit. From now on the holder does not rely on the lease.
func (h *hold) reportEndCall(kind history.Kind, record string) *call {
	h.stopWatch()
	op := h.op(kind)
	op.Record = record
	op.ValidUntil = h.client.clock.Of(h.lease.ValidUntil())
	op.Call = clock.Now()
	op.ReliedUntil = min(op.Call, op.ValidUntil)
	if ended := h.ended.Load(); ended != 0 {
		op.ReliedUntil = min(op.ReliedUntil, ended)
	}
	return h.client.report(op)
}

// end calls the function that ends the lease, and reports its result.
func (h *hold) end(ctx context.Context, endCall *call, end func(context.Context) error) {
	err := end(ctx)
	endCall.end(clock.Now(), outcomeOf(ctx, err), err)
}

// release releases the lease, sometimes with a context that has ended, and sometimes twice.
func (h *hold) release() {
	ctx := h.client.endContext()
	endCall := h.reportEndCall(history.Release, "")
	h.end(ctx, endCall, h.lease.Release)
	if h.client.chance(10) {
		again := endCall.op
		again.Call, again.Return, again.Outcome, again.Error = 0, 0, history.None, ""
		h.end(context.Background(), h.client.report(again), h.lease.Release)
	}
}

// endContext returns a context for a call that ends a lease. Sometimes it is cancelled: the
// call must work all the same.
func (c *client) endContext() context.Context {
	ctx := context.Background()
	if c.chance(20) {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		return ended
	}
	return ctx
}

// extend renews the lease once, for longer than automatic renewals do.
func (h *hold) extend() {
	ctx := context.Background()
	call := h.client.report(h.op(history.Extend))
	err := h.lease.Extend(ctx, h.client.TTL+h.client.upTo(h.client.TTL))
	at := clock.Now()
	call.op.ValidUntil = h.client.clock.Of(h.lease.ValidUntil())
	call.end(at, outcomeOf(ctx, err), err)
}

// episodeOf returns a digest of the token of a lease.
func episodeOf(lease *core.Lease) string {
	sum := sha256.Sum256([]byte(lease.Token()))
	return hex.EncodeToString(sum[:6])
}

// Versions are the versions of the registers of a key that a holder has read.
type versions struct{ fenced, plain int64 }

// read reads the registers of the key: only the unfenced one if the lease has no fencing
// number. It returns false if the register has seen a later holder.
func (c *client) read(h *hold) (seen versions, ok bool) {
	fence := h.lease.Fence()
	var err error
	if fence != 0 {
		seen.fenced, ok, err = c.user.Read(h.key, true, fence)
		must(err)
		if !ok {
			return versions{}, false
		}
	}
	seen.plain, _, err = c.user.Read(h.key, false, fence)
	must(err)
	return seen, true
}

// write writes the registers, based on the versions that were read. The fenced register
// checks the write itself. The client writes the unfenced one only if its lease is valid,
// or if it is careless.
func (c *client) write(h *hold, seen versions, careless bool) {
	fence := h.lease.Fence()
	if fence != 0 {
		_, err := c.user.Write(h.key, true, fence, seen.fenced, 0)
		must(err)
	}
	looked, valid := int64(0), careless
	if !careless {
		looked, valid = h.isValid()
	}
	if valid {
		_, err := c.user.Write(h.key, false, fence, seen.plain, looked)
		must(err)
	}
}

// section is what a client does under its locks: it reads all registers, works, and writes
// the registers. It stops working when the first lease has ended.
func (c *client) section(holds ...*hold) {
	ctx := holds[0].lease.Context()
	seen := make([]versions, len(holds))
	for i, h := range holds {
		var ok bool
		if seen[i], ok = c.read(h); !ok {
			return
		}
	}
	c.work(ctx)
	if c.chance(5) {
		holds[0].extend()
	}
	for i, h := range holds {
		c.write(h, seen[i], false)
	}
}

// work waits: mostly up to two milliseconds or not at all, and seldom up to three TTLs, so
// that a lease that is not renewed ends while it is held.
func (c *client) work(ctx context.Context) {
	switch n := c.random.IntN(100); {
	case n < 1:
		rest(ctx, c.upTo(3*c.TTL))
	case n < 60:
		rest(ctx, c.upTo(2*time.Millisecond))
	}
}
