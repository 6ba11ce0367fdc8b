package engine

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// A waiter is a caller in a waitlist.
type waiter struct {
	hold *Hold
	list *waitlist // nil once the waiter has left, or was granted or refused

	prev, next *waiter
	// arrived is the place of the caller in the order of arrival at its shard.
	arrived uint64

	// nowait is true for a caller that may not wait. It is in the list only until the
	// store has answered once.
	nowait bool
	// endsOnFault is true for a caller that is refused when the store does not answer the
	// next request.
	endsOnFault bool
	// queued is true once it is known that the caller has to wait.
	queued bool
	// updates receives a value when it turns out later that the caller has to wait. It
	// is closed when the waiter is settled: granted the lease, or refused. It is nil
	// while the waiter sends its own request.
	updates chan struct{}
	refusal *Refusal // set before updates is closed; nil if granted
}

// settle wakes the waiter: it was granted the lease, or refused.
func (w *waiter) settle() {
	if w.updates != nil {
		close(w.updates)
	}
}

// observeOutcome reports the end of an acquisition to the owner.
func (w *waiter) observeOutcome(begun time.Time, refusal *Refusal) {
	h := w.hold
	event := Event{Queued: w.queued, Waited: time.Since(begun)}
	if refusal != nil {
		event.Origin = refusal.First
	}
	switch {
	case refusal == nil:
		event.Kind, event.Grant = Acquired, h.grant
	case refusal.Reason == Done && h.engine.hooks.IsSealed != nil && h.engine.hooks.IsSealed(refusal.Record):
		refusal.Waited, refusal.Queued = event.Waited, event.Queued
		return
	case refusal.Reason == Done:
		event.Kind = Replayed
	default:
		event.Kind, event.Err = Refused, refusal
		if refusal.Reason == Unavailable && refusal.Fault != nil && h.request.Key != searchKey && h.engine.store.CountRefused(h.request.Key) {
			part := *refusal
			part.Fault = &store.Fault{Outage: true, Err: refusal.Fault}
			event.Err = &part
		}
	}
	h.engine.observe(event.of(h))
	if refusal == nil && h.number > 1 {
		h.engine.observe(Event{Kind: OutcomeUnknown, Origin: h.firstBefore()}.of(h)) // of the attempt before this one
	}
}

// firstBefore returns the reference of the attempt that died before that of the hold, or "".
func (h *Hold) firstBefore() string {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	if !h.isCurrent() {
		return ""
	}
	return h.lease.before
}

// observeWaiting reports to the owner that the caller has to wait.
func (w *waiter) observeWaiting() {
	if e := w.hold.engine; e.hooks.Observe != nil {
		e.observe(Event{Kind: Waiting}.of(w.hold))
	}
}
