package engine

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// A Hold is the use of a lease by one caller. It is safe for concurrent use.
type Hold struct {
	waiter     waiter // used until the lease is granted
	engine     *Engine
	shard      *shard // of the key
	request    Request
	acquireCtx context.Context // was given to Acquire

	// Set when the lease is granted.
	token        string
	lease        *lease    // not to be used once the hold has ended
	since        time.Time // before the grant: when the caller arrived; zero if that is not needed
	fence        int64
	number       int
	maxHoldTimer *time.Timer

	// Guarded by the mutex of the shard.
	ctx          context.Context // made on demand
	cancel       context.CancelCauseFunc
	nested       map[*Nested]struct{} // neither released nor lost
	reportedLong time.Duration        // the age of the hold at the last HeldLong event; 0: there was none
	until        time.Time            // after the release: the end of the lease's validity
	held         time.Duration        // after the release: how long the hold was held
	done         chan struct{}        // set by the first release; closed when the result is known
	result       *releaseResult       // set before done is closed; nil if it is empty
	record       []byte               // the answer of the attempt, set by the release
	said         *said                // about an unknown outcome; nil if the owner has said nothing

	// The small fields stand together, because the size of a hold is a part of the cost of a lock.
	grant       Grant              // set when the lease is granted
	loss        Loss               // this and the next ones are guarded by the mutex
	leaseEnded  bool               // the lease ended under the holder; Close does not wait for the hold any more
	cutOff      bool               // by Close, and it has an attempt: Engine.cutOff counts it
	renewFailed bool               // the last renewal failed
	unreported  bool               // the caller left before it could learn of the grant
	awaited     bool               // a caller waits for the release, and observes its events
	keepsKey    bool               // set by the release: the key stays locked for MinHold
	goesOn      bool               // the release has failed, and the commit goes on
	moved       bool               // Detach has moved the lease to another hold
	detached    bool               // made by Detach; never changes
	ending      Ending             // how the attempt was ended
	stored      store.RecordStatus // what became of the record
}

// Context returns the context under which the caller may act. It is cancelled with the
// cause of the loss before the lease's validity ends, and when the hold is released.
//
// The context is made by the first call. If the hold has ended before, the context has
// the end of the hold, and not the end of the caller's context.
func (h *Hold) Context() context.Context {
	for {
		made, loss, over := h.state()
		if made != nil {
			return made
		}
		ctx, cancel := derive(h.request.Parent, over) // without the mutex: the parent may be any context
		switch {
		case loss != NotLost:
			cancel(h.engine.hooks.Cause(loss))
		case over:
			cancel(h.endCause())
		}
		h.shard.mu.Lock()
		used := h.ctx == nil && over == (h.loss != NotLost || h.done != nil) // no caller gets a context that should have ended
		if used {
			h.ctx, h.cancel = ctx, cancel //nolint:fatcontext // of another parent, once
		}
		h.shard.mu.Unlock()
		if !used { // another call has made the context, or the hold has ended
			cancel(nil)
		}
	}
}

// derive returns a context that can be cancelled. If the hold is over, the context does
// not follow the end of its parent.
func derive(parent context.Context, over bool) (context.Context, context.CancelCauseFunc) {
	if over {
		parent = context.WithoutCancel(parent)
	}
	return context.WithCancelCause(parent)
}

// state returns the context, nil if it was not made, and whether the hold has ended or
// was lost.
func (h *Hold) state() (ctx context.Context, loss Loss, over bool) {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	return h.ctx, h.loss, h.loss != NotLost || h.done != nil
}

// cancelWith cancels a context with a cause; nil if no context was made while the
// caller held the mutex.
func cancelWith(cancel context.CancelCauseFunc, cause error) {
	if cancel != nil {
		cancel(cause)
	}
}

// Token returns the token in the key.
func (h *Hold) Token() string { return h.token }

// Limit returns the limit of the lease: that of the Request.
func (h *Hold) Limit() store.Limit { return h.request.Limit }

// Fence returns the fencing number of the hold; 0 if the request had no Fencing.
func (h *Hold) Fence() int64 { return h.fence }

// ValidUntil returns when the lease ends unless it is renewed; after the release, when the hold
// ended.
func (h *Hold) ValidUntil() time.Time {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	if h.done != nil {
		return earlier(h.until, h.since.Add(h.held))
	}
	return h.lease.validUntil
}

// Alive reports whether the hold is neither lost nor released.
func (h *Hold) Alive() bool {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	return h.isCurrent() && h.loss == NotLost
}

func (h *Hold) lossNow() Loss {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	return h.loss
}

// isCurrent reports whether the hold is not released and its lease has not ended.
func (h *Hold) isCurrent() bool { return h.done == nil && h.lease.queue.lease == h.lease }

// onMaxHold is called by the timer of MaxHold. The holder's context is cancelled, and
// the lease is not renewed any more. The key stays locked until the TTL ends, or until
// the holder releases it.
func (h *Hold) onMaxHold() {
	q := h.lease.queue
	q.shard.mu.Lock()
	if !h.isCurrent() || h.loss != NotLost {
		q.shard.mu.Unlock()
		return
	}
	h.lease.renewAt = time.Time{}
	var after callbacks
	h.reportLoss(MaxHoldExceeded, &after)
	q.shard.mu.Unlock()
	after.run(h.engine)
}

// reportLoss cancels the holder's context with the cause of the loss.
func (h *Hold) reportLoss(loss Loss, after *callbacks) {
	h.loss = loss
	cancel := h.cancel
	after.add(func() { cancelWith(cancel, h.engine.hooks.Cause(loss)) })
	if !h.unreported {
		h.report(Event{Kind: Lost, Held: time.Since(h.since), Loss: loss}.of(h), after)
	}
}
