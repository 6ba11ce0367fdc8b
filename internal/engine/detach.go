package engine

import (
	"context"
	"time"
)

// Detach moves the lease of the hold to a new hold, whose context has the values and the end of parent.
// Nothing is released or reported, and MaxHold counts on from the grant. It returns nil if the hold has
// ended, or was moved before.
//
// The hold has ended then, without a loss. Its context, and those of its nested holds, go on until its
// Release, which does nothing else.
func (h *Hold) Detach(parent context.Context) *Hold {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	if h.endedBy() != NotLost {
		return nil
	}
	d := &Hold{
		engine: h.engine, shard: h.shard, request: h.request, acquireCtx: parent,
		token: h.token, lease: h.lease, since: h.since, fence: h.fence, number: h.number,
		grant: h.grant, reportedLong: h.reportedLong, renewFailed: h.renewFailed, detached: true,
	}
	d.request.Parent = parent //nolint:fatcontext // no loop
	if h.maxHoldTimer != nil {
		h.maxHoldTimer.Stop()
		d.maxHoldTimer = time.AfterFunc(time.Until(h.since.Add(h.request.MaxHold)), d.onMaxHold)
	}
	h.lease.holder = d
	h.moved = true
	h.done, h.until, h.held = make(chan struct{}), h.lease.validUntil, time.Since(h.since)
	close(h.done)
	return d
}

// IsDetached reports whether the hold was made by Detach.
func (h *Hold) IsDetached() bool { return h.detached }

// WasMoved reports whether Detach has moved the lease to another hold.
func (h *Hold) WasMoved() bool {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	return h.moved
}

// MaxHold returns the MaxHold of the request; 0 is none.
func (h *Hold) MaxHold() time.Duration { return h.request.MaxHold }

// EndedBy returns the loss of the hold. It is Taken if the hold was released or moved, GivenAway if it
// was handed over, and NotLost while it is alive.
func (h *Hold) EndedBy() Loss {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	return h.endedBy()
}

// EndedBy is Hold.EndedBy. It is Taken if the nested hold was released.
func (n *Nested) EndedBy() Loss {
	n.hold.shard.mu.Lock()
	defer n.hold.shard.mu.Unlock()
	switch {
	case !n.ended:
		return n.hold.endedBy()
	case n.loss == NotLost:
		return Taken
	}
	return n.loss
}

// endedBy is EndedBy for a caller that holds the mutex.
func (h *Hold) endedBy() Loss {
	if h.loss == NotLost && !h.isCurrent() {
		return h.endOf()
	}
	return h.loss
}

// endOf returns how a hold ends that is not lost: Taken if it was released or moved.
func (h *Hold) endOf() Loss {
	if h.ticketToken() != "" {
		return GivenAway
	}
	return Taken
}
