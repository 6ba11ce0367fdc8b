package engine

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// A Hold is one caller's turn on a lease. It is safe for concurrent use.
type Hold struct {
	waiter  waiter // what it is until it is granted
	engine  *Engine
	queue   *queue
	request Request
	parent  context.Context

	// Set when the hold is granted.
	token        string
	lease        *lease // not to be looked into once the hold has ended
	since        time.Time
	fence        int64
	handover     Handover
	number       int
	maxHoldTimer *time.Timer

	// Guarded by the mutex of the line's shard.
	ctx          context.Context // made when it is asked for
	cancel       context.CancelCauseFunc
	nested       map[*Nested]struct{} // the turns under it that are neither released nor lost
	loss         Loss
	leaseEnded   bool // the lease ended under it; Close does not wait for it any more
	reportedLong bool
	unreported   bool          // its caller left before it could be told of the grant
	until        time.Time     // the end of the lease's validity, once it is released
	done         chan struct{} // set by the first release; closed once its end is known
	err          error         // a fault of the release; set before ended is closed
	// ending is how an attempt was ended, and record its answer; stored is what
	// became of them.
	ending Ending
	record []byte
	stored store.Stored
}

// Context returns the context under which the caller may act. It is cancelled
// with the cause of the loss before the lease's validity ends, and when the
// hold is released.
//
// It is made when it is asked for. What has happened to the hold by then is its
// end, and not what has become of the caller's context.
func (h *Hold) Context() context.Context {
	made, _, over := h.state()
	if made != nil {
		return made
	}
	ctx, cancel := derive(h.parent, over) // unlocked: the parent may be anybody's
	h.queue.shard.mu.Lock()
	if h.ctx == nil {
		h.ctx, h.cancel = ctx, cancel
	}
	h.queue.shard.mu.Unlock()
	made, loss, over := h.state()
	switch {
	case made != ctx:
		cancel(nil) // another call has made one
	case loss != NotLost:
		cancel(h.engine.hooks.Cause(loss))
	case over:
		cancel(nil)
	}
	return made
}

// derive returns a context that can be cancelled, and that does not follow its
// parent's end if it is over already.
func derive(parent context.Context, over bool) (context.Context, context.CancelCauseFunc) {
	if over {
		parent = context.WithoutCancel(parent)
	}
	return context.WithCancelCause(parent)
}

// state returns the context, if it was made, and whether the hold has ended or
// was lost.
func (h *Hold) state() (ctx context.Context, loss Loss, over bool) {
	h.queue.shard.mu.Lock()
	defer h.queue.shard.mu.Unlock()
	return h.ctx, h.loss, h.loss != NotLost || h.done != nil
}

// cancelWith cancels the context that was made, if one was, by the time that the
// caller held the mutex.
func cancelWith(cancel context.CancelCauseFunc, cause error) {
	if cancel != nil {
		cancel(cause)
	}
}

// Token returns the token that is in the key.
func (h *Hold) Token() string { return h.token }

// Fence returns the hold's fencing number; 0 if none was asked for.
func (h *Hold) Fence() int64 { return h.fence }

// ValidUntil returns when the lease ends unless it is renewed; after its release,
// when it would have ended.
func (h *Hold) ValidUntil() time.Time {
	h.queue.shard.mu.Lock()
	defer h.queue.shard.mu.Unlock()
	if h.done != nil {
		return h.until
	}
	return h.lease.validUntil
}

// Alive reports whether the hold is neither lost nor released.
func (h *Hold) Alive() bool {
	h.queue.shard.mu.Lock()
	defer h.queue.shard.mu.Unlock()
	return h.isCurrent() && h.loss == NotLost
}

// lossNow returns the loss, if there is one by now.
func (h *Hold) lossNow() Loss {
	h.queue.shard.mu.Lock()
	defer h.queue.shard.mu.Unlock()
	return h.loss
}

// current reports whether the hold is neither released nor under a lease that
// ended.
func (h *Hold) isCurrent() bool { return h.done == nil && h.queue.lease == h.lease }

// exceed is called by the timer at the end of the longest hold. The holder is
// told, and the lease runs out; the key stays until then, or until the holder
// has come back.
func (h *Hold) onMaxHold() {
	q := h.queue
	q.shard.mu.Lock()
	if !h.isCurrent() || h.loss != NotLost {
		q.shard.mu.Unlock()
		return
	}
	h.lease.renewAt = time.Time{}
	var after callbacks
	h.reportLoss(MaxHoldExceeded, &after)
	q.shard.mu.Unlock()
	after.run()
}

// lose ends the line's lease under its holder.
func (q *queue) lose(loss Loss, after *callbacks) {
	lease := q.lease
	h := lease.holder
	q.engine.schedule.drop(lease)
	q.markLost(lease)
	lease.holder = nil
	h.leaseEnded = true
	q.engine.work.Done()
	if h.loss == NotLost {
		h.reportLoss(loss, after)
	}
	q.endEpisode(true)
}

// tell cancels the holder's context with the cause of the loss.
func (h *Hold) reportLoss(loss Loss, after *callbacks) {
	h.loss = loss
	event := Event{Kind: Lost, Key: h.request.Key, Held: time.Since(h.since), Loss: loss}
	seen, cancel := !h.unreported, h.cancel
	after.add(func() {
		cancelWith(cancel, h.engine.hooks.Cause(loss))
		if seen {
			h.engine.observe(event)
		}
	})
}
