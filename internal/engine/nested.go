package engine

import (
	"context"
	"time"
)

// A Nested is a hold within a Hold, for code that runs under the Hold and has asked for
// the same key again. It ends when its caller releases it. It is lost when the release of the Hold
// begins, or when the Hold is lost. It is safe for concurrent use.
type Nested struct {
	hold   *Hold
	ctx    context.Context
	cancel context.CancelCauseFunc

	// Guarded by the mutex of the queue's shard.
	ended   bool
	loss    Loss      // set with ended
	endedAt time.Time // set with ended
}

// Nest returns a hold within the hold, for code with the context parent. It returns nil
// if the hold has been released or lost.
func (h *Hold) Nest(parent context.Context) *Nested {
	h.Context() // makes h.cancel
	n := &Nested{hold: h}
	n.ctx, n.cancel = context.WithCancelCause(parent) // without the mutex: the parent may be any context
	h.shard.mu.Lock()
	alive := h.endedBy() == NotLost
	if alive {
		h.addNested(n)
	}
	h.shard.mu.Unlock()
	if !alive {
		n.cancel(nil)
		return nil
	}
	return n
}

// addNested adds a nested hold, which ends with the hold. The caller holds the mutex.
func (h *Hold) addNested(n *Nested) {
	if h.nested == nil {
		h.nested = make(map[*Nested]struct{})
		cancel := h.cancel
		h.cancel = func(cause error) {
			h.LoseNested() // first: a nested context may descend from the hold's context
			cancel(cause)
		}
	}
	h.nested[n] = struct{}{}
}

// LoseNested ends the nested holds that are not released, with the loss of the hold. If the
// hold is not lost but released, or about to be, the loss is Taken. The release of the
// hold calls it.
func (h *Hold) LoseNested() {
	h.shard.mu.Lock()
	lost, loss := h.nested, h.loss
	h.nested = nil
	if loss == NotLost {
		loss = h.endOf()
	}
	for n := range lost {
		n.end(loss)
	}
	h.shard.mu.Unlock()
	for n := range lost {
		n.cancel(h.engine.hooks.Cause(loss))
	}
}

// lossOfNested returns what a nested hold reports if it ends now: the loss of the hold,
// or Taken if the hold was released. The lease of a hold that was moved lives on, so nothing is
// lost. The caller holds the mutex.
func (h *Hold) lossOfNested() Loss {
	if h.moved {
		return NotLost
	}
	return h.endedBy()
}

// end ends the nested hold. The caller holds the mutex.
func (n *Nested) end(loss Loss) { n.ended, n.loss, n.endedAt = true, loss, time.Now() }

// ValidUntil is Hold.ValidUntil. After the end of the nested hold it returns when that was, also
// if the hold around it goes on.
func (n *Nested) ValidUntil() time.Time {
	n.hold.shard.mu.Lock()
	ended, at := n.ended, n.endedAt
	n.hold.shard.mu.Unlock()
	until := n.hold.ValidUntil()
	if ended {
		return earlier(until, at)
	}
	return until
}

// Context returns the context under which the code may act. It is cancelled when the
// nested hold is released, and with the cause of the loss when it is lost.
func (n *Nested) Context() context.Context { return n.ctx }

// Extend is Hold.Extend. A nested hold that was lost returns its loss. After
// Release, Extend returns Taken.
func (n *Nested) Extend(ctx context.Context, ttl time.Duration) (Loss, error) {
	n.hold.shard.mu.Lock()
	ended, loss := n.ended, n.loss
	n.hold.shard.mu.Unlock()
	switch {
	case !ended:
		return n.hold.Extend(ctx, ttl)
	case loss == NotLost:
		return Taken, nil
	default:
		return loss, nil
	}
}

// Release ends the nested hold, and leaves the hold around it as it is. The loss says
// whether the nested hold was lost before. Later calls do nothing and return the same.
func (n *Nested) Release() Loss {
	h := n.hold
	h.shard.mu.Lock()
	if !n.ended {
		n.end(h.lossOfNested())
		delete(h.nested, n)
	}
	loss := n.loss
	h.shard.mu.Unlock()
	if loss == NotLost {
		n.cancel(nil)
	} else {
		n.cancel(h.engine.hooks.Cause(loss))
	}
	return loss
}
