package engine

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// Release releases the hold: the lease goes to the next waiter, or back to the store.
// The release happens even if ctx has ended. ctx limits how long Release waits for the
// store's reply; when ctx ends first, Release returns its error. Otherwise the error is
// nil, or the fault because of which the key stays locked until its TTL ends. The loss
// says whether the lease had ended before. Later calls do nothing and return the same.
func (h *Hold) Release(ctx context.Context) (Loss, error) { return h.release(ctx, EndAbort, nil) }

// release starts the release and waits for its result.
func (h *Hold) release(ctx context.Context, ending Ending, record []byte) (Loss, error) {
	how := awaited
	if isLong(ctx) && ctx.Err() == nil {
		how = inline
	}
	h.startRelease(how, ending, record)
	select {
	case <-h.done:
		return h.outcome()
	default:
	}
	select {
	case <-h.done:
		return h.outcome()
	case <-ctx.Done():
		_, _ = h.outcome() // the events so far; the queue gets the others
		return NotLost, ctx.Err()
	}
}

// BeginRelease starts the release and does not wait.
func (h *Hold) BeginRelease() { h.startRelease(begun, EndAbort, nil) }

// BeginAwaitedRelease starts the release for a caller that will call Release, too. That call
// observes the events of the release.
func (h *Hold) BeginAwaitedRelease() { h.startRelease(awaited, EndAbort, nil) }

// A releaseMode says what the caller of a release does meanwhile.
type releaseMode int8

const (
	unseen  releaseMode = iota // it never learned of the hold, so no event is reported
	begun                      // it goes on
	awaited                    // it waits, or will wait
	inline                     // it waits, so the release may run on its goroutine
)

// startRelease starts the release, once. ending and record are those of an attempt.
func (h *Hold) startRelease(how releaseMode, ending Ending, record []byte) {
	h.startReleaseTo(nil, how, ending, record)
}

// startReleaseTo is startRelease. If the key goes to a ticket, and the hold has ended before, it does
// nothing and returns false.
func (h *Hold) startReleaseTo(to *ticket, how releaseMode, ending Ending, record []byte) (started bool) {
	q := h.lease.queue
	outage := h.engine.refuseUnserved(h.request.Key) != nil
	q.shard.mu.Lock()
	if to != nil && h.endedBy() != NotLost {
		q.shard.mu.Unlock()
		return false
	}
	h.awaited = h.awaited || how >= awaited
	if h.done != nil {
		var left context.CancelCauseFunc
		if h.moved { // its context has gone on
			left = h.cancel
		}
		q.shard.mu.Unlock()
		cancelWith(left, nil)
		return true
	}
	var cause error
	if to != nil {
		h.ownResult().ticket = to
		h.lease.inFlight++ // so that the release waits until the context has ended
		cause = h.engine.hooks.Cause(GivenAway)
	}
	mine, now := h.isCurrent(), time.Now()
	h.done, h.until, h.held = h.engine.ended, h.lease.validUntil, now.Sub(h.since)
	if h.maxHoldTimer != nil {
		h.maxHoldTimer.Stop()
	}
	h.unreported, h.ending, h.record = how == unseen, ending, record
	freeing, ready, late := false, false, false
	var r store.ReleaseRequest
	switch {
	case mine:
		if freeing = h.keepKey() || !q.pass(outage, now); freeing {
			r, ready = q.prepareRelease(h)
		}
	case h.request.Attempt != nil && ending != EndUnknown:
		late = true
		if ending.isFinal() {
			q.committing++
		}
	case h.loss == Closed:
		q.forgetLost(h.token)
	default:
		// The lease was lost while the holder ran. A renewal that came late may have
		// kept the key, and no code runs under it now.
		q.forgetLost(h.token)
		h.engine.discardAsync(keyToken{h.request.Key, h.token}, nil, h.until)
	}
	var after callbacks
	cancel := h.cancel
	// A result that is there at once needs no channel of its own, unless somebody is to see first that the context has ended.
	if freeing || late || to != nil || cancel != nil || h.cutOff {
		h.done = make(chan struct{})
	}
	if !freeing && !late {
		h.completeRelease(nil, now, &after)
	}
	q.shard.mu.Unlock()
	cancelWith(cancel, cause)
	if to != nil {
		q.shard.mu.Lock()
		h.lease.renewalDone()
		q.shard.mu.Unlock()
	}
	if late {
		h.releaseLate()
	}
	if ready {
		r.Inline = how == inline
		q.sendRelease(r)
	}
	after.run(h.engine)
	return true
}

// completeRelease ends the release of a hold at a time. err is the fault of the release, if any.
func (h *Hold) completeRelease(err error, now time.Time, after *callbacks) {
	if err != nil {
		h.ownResult().err = err
	}
	if !h.leaseEnded {
		h.engine.work.Done()
	}
	if h.cutOff {
		after.add(h.engine.cutOff.Done)
	}
	h.completeHandover(err, after)
	if !h.unreported && h.engine.hooks.Observe != nil {
		h.observeEnding(err, after)
		h.observeUnknown(err, after)
		h.report(Event{Kind: Released, Held: now.Sub(h.since), Loss: h.loss, Ending: h.ending, Err: err}.of(h), after)
	}
	if h.done != h.engine.ended {
		after.done = h.done
	}
}
